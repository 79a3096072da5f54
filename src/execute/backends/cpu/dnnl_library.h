#pragma once
// oneDNN, found when the first product is made: its 39 MB are mapped by who multiplies, not by who plans. The build
// takes its headers alone, and dnnl_library.cc stands in for its functions. What a plan needs to know of it before (its
// version and the instructions it will use) is told by the headers and by this machine, and held against the library
// when that is loaded. Needs no oneDNN header.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/result.h"

namespace systole::cpu {

// In the order of what oneDNN prefers.
enum class DnnlIsa : std::uint8_t { other, avx2, avx2_vnni, avx512, avx512_vnni, avx512_bf16, amx };

const char* name_of(DnnlIsa isa);
// "avx512-bf16", or oneDNN's own "avx512_core_bf16"; nothing for other words.
std::optional<DnnlIsa> dnnl_isa_named(std::string_view word);
std::vector<std::string> dnnl_isa_names();

// What oneDNN uses in this process: all that this machine has, or less if it is pinned; else ONEDNN_MAX_CPU_ISA lowers
// it, as oneDNN has it. The same at every call. Thread safety: any thread, here and below.
DnnlIsa dnnl_isa();

bool machine_has(DnnlIsa isa);

// Holds oneDNN to `isa` in this process. REQUIRES: machine_has(isa). Errors: invalid, when dnnl_isa() was another
// already.
Status pin_dnnl_isa(DnnlIsa isa);

// The best of a machine's that `most` allows. AVX2's VNNI is no part of AVX-512: `avx2_vnni` says if the machine has
// it.
DnnlIsa lowered(DnnlIsa machine, bool avx2_vnni, DnnlIsa most);

// "oneDNN 2.6.3 avx512-bf16"
std::string dnnl_name(DnnlIsa isa = dnnl_isa());

// Loads it, once. Errors: unsupported, where it is not installed or is not what dnnl_name says: numbers would change.
Status load_dnnl();

}  // namespace systole::cpu
