#pragma once
// The CPU device: a function becomes a flat list of kernels with bound arguments, which one team of threads runs in
// order on the Program's planned arena. f32, bf16, i32, i64 and bool; other types are refused by name. Results have the
// same bits in every run, and for any number of threads except in contractions of oneDNN (`exact` avoids those or runs
// them on one thread).

#include <memory>
#include <optional>
#include <vector>

#include "execute/backends/cpu/kernels/kernels.h"
#include "execute/runtime/device.h"

namespace systole {

struct CpuOptions {
  int threads = 0;                             // 0: as many as the cores that this process may use
  std::optional<cpu::Isa> isa;                 // nothing: the best on this machine
  bool chains = true;                          // fuse elementwise ops
  bool exact = false;                          // the same bits for any number of threads, contractions too
  bool count = true;                           // false: no counters and kernel times, to measure their overhead
  Bytes memory_limit;                          // 0: unlimited
  std::vector<Link> links;                     // to other ranks, for the Target; empty: unknown
  bool (*supports)(cpu::Isa) = cpu::supports;  // overridden by tests
};

// Errors: unsupported on a machine without AVX2, or without the requested instruction set.
Result<std::unique_ptr<Device>> make_cpu_device(const CpuOptions& options = {});

// OMP_PROC_BIND and OMP_PLACES bind the process to its first place before main. It would then count one core and create
// all its threads there. This gives the calling thread the cores of all places; OpenMP moves the team's threads to
// their places. No effect if neither is set.
void undo_openmp_binding();

// The library that the device loads at its first contraction: its name ("oneDNN 2.6.3 avx512-bf16"), and loading it.
// Errors: unsupported, naming the package.
std::string cpu_library();
Status load_cpu_library();

}  // namespace systole
