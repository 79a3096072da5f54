#pragma once
// The device that runs on this machine's cores: a function becomes a flat list of kernels with their arguments, run one
// after the other by one team of threads on the arena that the Program planned. f32, bf16, i32, i64 and bool; other
// types are refused by name. Results are the same bits at every run and, contractions of oneDNN apart (`exact` does
// without, or gives each to one thread), for any number of threads.

#include <memory>
#include <optional>
#include <vector>

#include "execute/backends/cpu/kernels/kernels.h"
#include "execute/runtime/device.h"

namespace systole {

struct CpuOptions {
  int threads = 0;                             // 0: as many as this process may run on
  std::optional<cpu::Isa> isa;                 // nothing: the best of this machine
  bool chains = true;                          // fuse elementwise ops
  bool exact = false;                          // the same bits for any number of threads, contractions too
  bool count = true;                           // false: no counters and times of kernels, to see what they cost
  Bytes memory_limit;                          // 0: not limited
  std::vector<Link> links;                     // to other ranks, for the Target; empty: nothing is known of them
  bool (*supports)(cpu::Isa) = cpu::supports;  // what this machine has; tests ask of another
};

// Errors: unsupported on a machine without AVX2, or for an instruction set that it lacks.
Result<std::unique_ptr<Device>> make_cpu_device(const CpuOptions& options = {});

// OMP_PROC_BIND and OMP_PLACES bind the process to its first place before main, where it would count one core and make
// all its threads there. Gives the calling thread the cores of all places; the team's threads go to theirs as OpenMP
// has it. Nothing where neither is set.
void undo_openmp_binding();

// What the device loads at its first contraction: its name ("oneDNN 2.6.3 avx512-bf16"), and that it can be loaded.
// Errors: unsupported, naming the package.
std::string cpu_library();
Status load_cpu_library();

}  // namespace systole
