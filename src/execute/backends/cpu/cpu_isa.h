#pragma once
// The instruction sets that determine the bits of this backend's results: of our kernels, and of oneDNN's products. A
// process may be pinned to fewer than its machine has, and then gives the results of a lesser machine, so that a run
// resumes with the same bits (docs/concepts/exact.md).

#include <string>
#include <string_view>

#include "execute/backends/cpu/dnnl_library.h"
#include "execute/backends/cpu/kernels/kernels.h"

namespace systole {

struct CpuIsa {
  cpu::Isa kernels = cpu::Isa::avx2;
  cpu::DnnlIsa products = cpu::DnnlIsa::avx2;
  bool operator==(const CpuIsa&) const = default;
};

std::string to_string(const CpuIsa& isa);  // "avx512/avx512-bf16"

// As written by to_string, or one word for both: "avx512-bf16", "avx512_core_bf16". Errors: invalid, naming the words.
Result<CpuIsa> parse_cpu_isa(std::string_view text);

// The default of this process's devices.
CpuIsa cpu_isa();

// Whether this machine supports it.
bool has_cpu_isa(const CpuIsa& isa);

// Pins this process to `isa`. Call it before the first device is made. Errors: unsupported (this machine lacks it);
// invalid (devices already use another).
Status pin_cpu_isa(const CpuIsa& isa);

// Whether pin_cpu_isa was called.
bool cpu_is_pinned();

// Everything that determines a device's bits besides its Program and, unless exact, its threads: "avx512, oneDNN 2.6.3
// avx512-bf16". For an `isa` other than this process's: what it would be on this machine.
std::string cpu_numerics(const CpuIsa& isa);

}  // namespace systole
