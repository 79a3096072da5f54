#pragma once
// Vectors of f32 as wide as the instruction set of this translation unit, by the compilers' vector extensions (no
// intrinsics: gcc and clang lower a * b + c to a fused multiply-add). For kernel sources only: needs SYSTOLE_ISA, the
// namespace that separates this compilation's functions from the others'.

#include <cstdint>

#include "execute/backends/cpu/kernels/elem.h"
#include "execute/backends/cpu/kernels/team.h"

#ifndef SYSTOLE_ISA
#error "SYSTOLE_ISA names the instruction set of this compilation (kernels/CMakeLists.txt)"
#endif

namespace systole::cpu::SYSTOLE_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
#else
constexpr int kLanes = 8;
#endif

typedef float F __attribute__((vector_size(kLanes * 4)));
typedef std::int32_t I __attribute__((vector_size(kLanes * 4)));
typedef std::uint32_t U __attribute__((vector_size(kLanes * 4)));
typedef std::uint16_t H __attribute__((vector_size(kLanes * 2)));

using i64 = std::int64_t;

struct Bf16 {
  std::uint16_t bits;
};

inline F splat(float x) { return x - F{}; }  // x + 0 would turn -0 into 0, so compilers keep that addition
inline F bits_as_f(I x) { return reinterpret_cast<F>(x); }
inline F bits_as_f(U x) { return reinterpret_cast<F>(x); }
inline I f_as_i(F x) { return reinterpret_cast<I>(x); }
inline U f_as_u(F x) { return reinterpret_cast<U>(x); }
inline I to_int(F x) { return __builtin_convertvector(x, I); }  // toward zero
inline F to_float(I x) { return __builtin_convertvector(x, F); }

// mask is all ones or all zeros per lane.
inline F blend(I mask, F a, F b) { return mask ? a : b; }
inline F vabs(F x) { return bits_as_f(f_as_i(x) & 0x7fffffff); }
inline F vmax(F a, F b) { return blend(a > b, a, b); }  // b if either is NaN
inline F vmin(F a, F b) { return blend(a < b, a, b); }
// As the reference: NaN if either is.
inline F max_nan(F a, F b) { return blend((a < b) | (b != b), b, a); }
inline F min_nan(F a, F b) { return blend((b < a) | (b != b), b, a); }

// Loads and stores of any alignment.
inline F load(const float* p) {
  F v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
inline F load(const Bf16* p) {
  H v;
  __builtin_memcpy(&v, p, sizeof v);
  return bits_as_f(__builtin_convertvector(v, U) << 16);
}
inline void store(float* p, F v) { __builtin_memcpy(p, &v, sizeof v); }

// Rounds to nearest, ties to even, in the upper half of each lane; NaN stays NaN. The same bits as to_bf16 of
// ground/tensor/dtype.h.
inline U bf16_high(F v) {
  const U bits = f_as_u(v);
  const U nearest = bits + 0x7fffU + ((bits >> 16) & 1U);
  return (v != v ? bits | 0x400000U : nearest) & 0xffff0000U;
}
// For numbers that bf16 represents exactly: stores the upper half.
inline void store_exact(Bf16* p, F v) {
  const H h = __builtin_convertvector(f_as_u(v) >> 16, H);
  __builtin_memcpy(p, &h, sizeof h);
}
inline F round_bf16(F v) { return bits_as_f(bf16_high(v)); }
inline void store(Bf16* p, F v) { store_exact(p, round_bf16(v)); }

// The first n lanes (0 ≤ n < kLanes); the others are `fill`.
template <typename T>
inline F load_part(const T* p, i64 n, T fill) {
  T lanes[kLanes];
  for (int i = 0; i < kLanes; ++i) lanes[i] = i < n ? p[i] : fill;
  return load(lanes);
}
template <typename T>
inline void store_part(T* p, F v, i64 n) {
  T lanes[kLanes];
  store(lanes, v);
  for (int i = 0; i < kLanes; ++i) {
    if (i < n) p[i] = lanes[i];
  }
}

inline float to_f32(float x) { return x; }
inline float to_f32(Bf16 x) {
  const std::uint32_t wide = static_cast<std::uint32_t>(x.bits) << 16;
  float f;
  __builtin_memcpy(&f, &wide, sizeof f);
  return f;
}
inline void set_f32(float* p, float x) { *p = x; }
inline void set_f32(Bf16* p, float x) {
  std::uint32_t b;
  __builtin_memcpy(&b, &x, sizeof b);
  p->bits = static_cast<std::uint16_t>((b & 0x7fffffffU) > 0x7f800000U ? (b >> 16) | 0x40U
                                                                       : (b + 0x7fffU + ((b >> 16) & 1U)) >> 16);
}
template <typename T>
inline T of_f32(float x) {
  T t;
  set_f32(&t, x);
  return t;
}

// Folds across lanes, always in this order: the upper half onto the lower, recursively.
template <typename Op>
inline float fold(F v, Op op) {
#if defined(__AVX512F__)
  v = op(v, __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14, 15));
  v = op(v, __builtin_shufflevector(v, v, 4, 5, 6, 7, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
  v = op(v, __builtin_shufflevector(v, v, 2, 3, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
  v = op(v, __builtin_shufflevector(v, v, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
#else
  v = op(v, __builtin_shufflevector(v, v, 4, 5, 6, 7, 4, 5, 6, 7));
  v = op(v, __builtin_shufflevector(v, v, 2, 3, 2, 3, 4, 5, 6, 7));
  v = op(v, __builtin_shufflevector(v, v, 1, 1, 2, 3, 4, 5, 6, 7));
#endif
  return v[0];
}
inline float sum_lanes(F v) {
  return fold(v, [](F a, F b) { return a + b; });
}
inline float max_lanes(F v) {  // NaN if any is
  return fold(v, [](F a, F b) { return max_nan(a, b); });
}
inline float min_lanes(F v) {
  return fold(v, [](F a, F b) { return min_nan(a, b); });
}

inline i64 ceil_div(i64 a, i64 b) { return (a + b - 1) / b; }
inline i64 lesser(i64 a, i64 b) { return a < b ? a : b; }
inline i64 greater(i64 a, i64 b) { return a > b ? a : b; }

// fn(index, thread) for each part; see team.h.
template <typename Fn>
inline void parallel(int threads, i64 parts, Schedule schedule, const Fn& fn) {
  run_parts(
      threads, parts, schedule,
      [](void* context, std::int64_t i, int thread) { (*static_cast<const Fn*>(context))(i, thread); },
      const_cast<Fn*>(&fn));
}

// fn(begin, end) over [0, n) in blocks of `block`: the blocks depend on n alone.
template <typename Fn>
inline void parallel_blocks(int threads, i64 n, i64 block, const Fn& fn) {
  if (n <= block) {
    if (n > 0) fn(i64{0}, n);
    return;
  }
  parallel(threads, ceil_div(n, block), Schedule::contiguous,
           [&](i64 i, int) { fn(i * block, lesser(n, (i + 1) * block)); });
}

// Rows per part, so that a part is about 32 KiB, whatever the number of threads.
inline i64 rows_per_part(i64 row_bytes) { return greater(1, 32768 / greater(1, row_bytes)); }

// Calls fn with a null pointer to the element's type: visit_float(elem, [&](auto* t) { using T = typename
// Pointee<decltype(t)>::type; … }).
template <typename P>
struct Pointee;
template <typename T>
struct Pointee<T*> {
  using type = T;
};
template <typename Fn>
inline void visit_float(Elem elem, const Fn& fn) {
  if (elem == Elem::f32) {
    fn(static_cast<float*>(nullptr));
  } else {
    fn(static_cast<Bf16*>(nullptr));
  }
}

}  // namespace
}  // namespace systole::cpu::SYSTOLE_ISA
