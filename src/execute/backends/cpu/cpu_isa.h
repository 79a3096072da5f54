#pragma once
// The instruction sets that the bits of this backend's results depend on: of our kernels, and of oneDNN's products. A
// process may be held to fewer than its machine has, and then computes what a lesser machine does: so a run that was
// begun there goes on to the same bits (docs/concepts/exact.md).

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

// As to_string writes it, or one word for both: "avx512-bf16", "avx512_core_bf16". Errors: invalid, naming the words.
Result<CpuIsa> parse_cpu_isa(std::string_view text);

// Of the devices of this process for which nothing else is asked.
CpuIsa cpu_isa();

// Whether this machine can compute with it.
bool has_cpu_isa(const CpuIsa& isa);

// Holds this process to `isa`. Call it before its first device is made. Errors: unsupported, where this machine lacks
// it; invalid, where its devices compute with another already.
Status pin_cpu_isa(const CpuIsa& isa);

// Whether pin_cpu_isa has held it.
bool cpu_is_pinned();

// All that a device's bits depend on besides its Program and, unless it is exact, its threads: "avx512, oneDNN 2.6.3
// avx512-bf16". Of another set than this process's: what it would be on this machine.
std::string cpu_numerics(const CpuIsa& isa);

}  // namespace systole
