#pragma once
// The block of elements that a chain currently works on, in registers that are arrays. For kernel sources only.

#include "execute/backends/cpu/kernels/chain.h"
#include "execute/backends/cpu/kernels/vec_math.h"

namespace systole::cpu::SYSTOLE_ISA {
namespace {

constexpr i64 kBlock = 512;

struct Registers {  // + 64: neighbours do not map to the same cache sets
  alignas(64) unsigned char narrow[kMaxChainRegisters][kBlock * 4 + 64];
  alignas(64) unsigned char wide[kMaxChainWideRegisters][kBlock * 8 + 64];
};

// The current elements [begin, begin + n).
struct Block {
  Registers& registers;
  void* const* pointers;
  i64 begin, n;
  i64 padded;  // n rounded up to whole vectors

  float* f(int r) const { return reinterpret_cast<float*>(registers.narrow[r]); }
  std::int32_t* i(int r) const { return reinterpret_cast<std::int32_t*>(registers.narrow[r]); }
  std::int64_t* w(int r) const { return reinterpret_cast<std::int64_t*>(registers.wide[r]); }
};

inline I load_i(const std::int32_t* p) {
  I v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
inline void store_i(std::int32_t* p, I v) { __builtin_memcpy(p, &v, sizeof v); }

// One operand in f32; rounds the result if the value's type is bf16.
template <typename Fn>
inline void map1(const ChainStep& s, const Block& b, Fn fn) {
  const float* x = b.f(s.a);
  float* y = b.f(s.dst);
  if (s.elem == Elem::bf16) {
    for (i64 i = 0; i < b.padded; i += kLanes) store(y + i, round_bf16(fn(load(x + i))));
  } else {
    for (i64 i = 0; i < b.padded; i += kLanes) store(y + i, fn(load(x + i)));
  }
}
}  // namespace
}  // namespace systole::cpu::SYSTOLE_ISA
