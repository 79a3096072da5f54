#include "execute/backends/cpu/cpu_isa.h"

#include <fmt/ranges.h>

#include <atomic>

#include "execute/backends/cpu/contract_gemm.h"

namespace systole {
namespace {

// The widest of our kernels on a machine whose oneDNN has these instructions.
cpu::Isa kernels_beside(cpu::DnnlIsa products) {
  return products >= cpu::DnnlIsa::avx512 ? cpu::Isa::avx512 : cpu::Isa::avx2;
}

Error unknown(std::string_view text) {
  return error(ErrorKind::invalid, "'{}' is no instruction set of the cpu backend", text)
      .hinted(fmt::format("one of {}; or our kernels' and oneDNN's apart, as avx512/avx2",
                          fmt::join(cpu::dnnl_isa_names(), ", ")));
}

// The pinned kernels; -1: not pinned.
std::atomic<int>& pinned_kernels() {
  static std::atomic<int> pinned = -1;
  return pinned;
}

}  // namespace

std::string to_string(const CpuIsa& isa) {
  return fmt::format("{}/{}", cpu::name_of(isa.kernels), cpu::name_of(isa.products));
}

Result<CpuIsa> parse_cpu_isa(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto products = cpu::dnnl_isa_named(slash == text.npos ? text : text.substr(slash + 1));
  if (!products) return unknown(text);
  CpuIsa isa{kernels_beside(*products), *products};
  if (slash == text.npos) return isa;
  for (const cpu::Isa kernels : {cpu::Isa::avx2, cpu::Isa::avx512}) {
    isa.kernels = kernels;
    if (text.substr(0, slash) == cpu::name_of(kernels)) return isa;
  }
  return unknown(text);
}

CpuIsa cpu_isa() {
  const int pinned = pinned_kernels();
  const cpu::Isa best = cpu::supports(cpu::Isa::avx512) ? cpu::Isa::avx512 : cpu::Isa::avx2;
  return {pinned < 0 ? best : static_cast<cpu::Isa>(pinned), cpu::dnnl_isa()};
}

bool has_cpu_isa(const CpuIsa& isa) { return cpu::supports(isa.kernels) && cpu::machine_has(isa.products); }

Status pin_cpu_isa(const CpuIsa& isa) {
  if (!has_cpu_isa(isa))
    return error(ErrorKind::unsupported, "this machine lacks {}: it has {}", to_string(isa), to_string(cpu_isa()));
  TRY(cpu::pin_dnnl_isa(isa.products));
  pinned_kernels() = static_cast<int>(isa.kernels);
  return {};
}

bool cpu_is_pinned() { return pinned_kernels() >= 0; }

std::string cpu_numerics(const CpuIsa& isa) {
  return fmt::format("{}, {}{}", cpu::name_of(isa.kernels), cpu::dnnl_name(isa.products),
                     cpu::widens_bf16(isa.products) ? ", bf16 in f32" : "");
}

}  // namespace systole
