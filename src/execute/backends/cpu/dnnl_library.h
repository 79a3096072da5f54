#pragma once
// Loads oneDNN at the first product: its 39 MB are mapped only by processes that multiply, not by those that plan. The
// build uses its headers only; dnnl_library.cc has stubs for its functions. A plan needs its version and instruction
// set: these come from the headers and this machine, and are checked when the library is loaded. This header needs no
// oneDNN header.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/result.h"

namespace systole::cpu {

// In oneDNN's order of preference.
enum class DnnlIsa : std::uint8_t { other, avx2, avx2_vnni, avx512, avx512_vnni, avx512_bf16, amx };

const char* name_of(DnnlIsa isa);
// "avx512-bf16", or oneDNN's own "avx512_core_bf16"; nothing for other words.
std::optional<DnnlIsa> dnnl_isa_named(std::string_view word);
std::vector<std::string> dnnl_isa_names();

// The instruction set that oneDNN uses in this process: the best of this machine, or less if pinned; otherwise
// ONEDNN_MAX_CPU_ISA lowers it, as in oneDNN. The same in every call. Thread-safe, like the functions below.
DnnlIsa dnnl_isa();

bool machine_has(DnnlIsa isa);

// Pins oneDNN to `isa` in this process. REQUIRES: machine_has(isa). Errors: invalid (dnnl_isa() has already returned
// another).
Status pin_dnnl_isa(DnnlIsa isa);

// The best of a machine's instruction sets that `most` allows. AVX2's VNNI is not part of AVX-512: `avx2_vnni` says
// whether the machine has it.
DnnlIsa lowered(DnnlIsa machine, bool avx2_vnni, DnnlIsa most);

// "oneDNN 2.6.3 avx512-bf16"
std::string dnnl_name(DnnlIsa isa = dnnl_isa());

// Loads it once. Errors: unsupported (not installed, or not what dnnl_name says: results would change).
Status load_dnnl();

}  // namespace systole::cpu
