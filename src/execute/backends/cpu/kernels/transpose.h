#pragma once
// Transposes a square of kLanes vectors (its rows) in registers: for distance h = kLanes / 2, …, 1, rows i and i + h
// swap the matching halves of their 2h-wide groups.

#include "execute/backends/cpu/kernels/vec.h"

namespace systole::cpu::SYSTOLE_ISA {
namespace {

template <int... kLane>
struct Lanes {};

#if defined(__AVX512F__)
using AllLanes = Lanes<0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15>;
#else
using AllLanes = Lanes<0, 1, 2, 3, 4, 5, 6, 7>;
#endif

template <int kDistance, int... kLane>
inline void exchange(F& a, F& b, Lanes<kLane...>) {
  const F low = __builtin_shufflevector(a, b, ((kLane & kDistance) != 0 ? kLanes + kLane - kDistance : kLane)...);
  b = __builtin_shufflevector(a, b, ((kLane & kDistance) != 0 ? kLanes + kLane : kLane + kDistance)...);
  a = low;
}

template <int kDistance>
inline void exchange_rows(F (&rows)[kLanes]) {
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) {
    if ((i & kDistance) == 0) exchange<kDistance>(rows[i], rows[i + kDistance], AllLanes());
  }
}

inline void transpose(F (&rows)[kLanes]) {
#if defined(__AVX512F__)
  exchange_rows<8>(rows);
#endif
  exchange_rows<4>(rows);
  exchange_rows<2>(rows);
  exchange_rows<1>(rows);
}

}  // namespace
}  // namespace systole::cpu::SYSTOLE_ISA
