#pragma once
// Elementary functions on vectors of f32, without tables or branches. vec_math_test measures the errors below against
// libm in double (in units of the last place of the f32 result).
//
//   exp    n = round(x / ln 2), x - n ln 2 in two parts (Cody and Waite 1980), Taylor to r^7 (|r| ≤ 0.347: the rest is
//          below 0.05 ulp), 2^n in two factors so that denormal results and 2^128 come out right        ≤ 1 ulp
//   log    x = 2^k (1 + f), 1 + f in [√½, √2); with s = f / (2 + f) the series of 2 atanh(s) to s^9,
//          arranged as in fdlibm's e_log.c so that f itself enters exactly                                ≤ 1 ulp
//   tanh   e / (e + 2) with e = expm1(2|x|), exact near 0                                               ≤ 2.5 ulp
//   erf    |x| < 1: x P(x²), degree 7; else 1 - exp(Q(|x| - 2.5)), degree 8, Q a fit of log erfc on [1, 4];
//          both interpolated at Chebyshev's points (error 4e-11 and 6e-10, mpmath)                        ≤ 2 ulp

#include "execute/backends/cpu/kernels/vec.h"

namespace systole::cpu::SYSTOLE_ISA {
namespace {

constexpr float kInf = __builtin_inff();
constexpr float kLn2High = 0.693145751953125f, kLn2Low = 1.428606765330187e-6f, kLog2E = 1.44269504088896341f;

// Nearest integer as float, for |x| < 2^22: the addition rounds.
inline F round_small(F x) {
  const F magic = splat(12582912.0f);  // 1.5 · 2^23
  F sum = x + magic;
  // Correct also if a compiler contracts x = a * b into the sum: the sum then rounds once.
  return sum - magic;
}

// 2^n for integers n in [-126, 127].
inline F power_of_two(I n) { return bits_as_f((n + 127) << 23); }

// e^r - 1 for |r| ≤ 0.35.
inline F expm1_small(F r) {
  F p = splat(1.0f / 5040);
  p = p * r + splat(1.0f / 720);
  p = p * r + splat(1.0f / 120);
  p = p * r + splat(1.0f / 24);
  p = p * r + splat(1.0f / 6);
  p = p * r + splat(0.5f);
  return p * (r * r) + r;
}

inline F exp_f(F x) {
  const F clamped = vmin(vmax(x, splat(-105.0f)), splat(89.0f));  // e^-105 is 0, e^89 infinite; NaN is restored below
  const F n = round_small(clamped * kLog2E);
  const F r = (clamped - n * kLn2High) - n * kLn2Low;
  const I k = to_int(n), half = k >> 1;
  const F y = ((expm1_small(r) + 1.0f) * power_of_two(half)) * power_of_two(k - half);
  return blend(x != x, x, y);
}

// exp_f for x ≤ 88 or NaN, but 0 below -87.3, where exp_f gives denormals: half the work.
inline F exp_flushed(F x) {
  const F low = splat(-87.3f), clamped = blend(x < low, low, x);
  const F n = round_small(clamped * kLog2E);
  const F r = (clamped - n * kLn2High) - n * kLn2Low;
  const F y = (expm1_small(r) + 1.0f) * power_of_two(to_int(n));
  return blend(x < low, F{}, y);
}

inline F log_f(F x) {
  const I tiny = (x < splat(1.17549435e-38f));
  const F scaled = blend(tiny, x * 8388608.0f, x);  // denormals by 2^23
  const U bits = f_as_u(scaled);
  const I exponent = reinterpret_cast<I>(bits - 0x3f3504f3u) >> 23;  // √½ begins a binade
  const F m = bits_as_f(bits - (reinterpret_cast<U>(exponent) << 23));
  const F k = to_float(exponent - (tiny & 23));
  const F f = m - 1.0f;
  const F s = f / (f + 2.0f);
  const F z = s * s;
  F series = splat(2.0f / 9);
  series = series * z + splat(2.0f / 7);
  series = series * z + splat(2.0f / 5);
  series = series * z + splat(2.0f / 3);
  const F r = series * z;
  const F half_f2 = f * f * 0.5f;
  const F y = k * kLn2High - ((half_f2 - (s * (half_f2 + r) + k * kLn2Low)) - f);
  F result = blend(x == splat(kInf), x, y);
  result = blend(x == splat(0.0f), splat(-kInf), result);
  return blend((x < splat(0.0f)) | (x != x), splat(__builtin_nanf("")), result);
}

inline F tanh_f(F x) {
  const F a = vmin(vabs(x), splat(9.5f));  // tanh 9.02 rounds to 1
  const F n = round_small(a * (2 * kLog2E));
  const F r = (a * 2.0f - n * kLn2High) - n * kLn2Low;
  const F scale = power_of_two(to_int(n));
  const F e = expm1_small(r) * scale + (scale - 1.0f);
  const F y = e / (e + 2.0f);
  const F with_sign = bits_as_f(f_as_i(y) | (f_as_i(x) & static_cast<std::int32_t>(0x80000000)));
  return blend(x != x, x, with_sign);
}

inline F sigmoid_f(F x) { return 1.0f / (1.0f + exp_f(-x)); }

inline F erf_f(F x) {
  const F a = vabs(x);
  const F z = a * a;
  F p = splat(-9.667044571e-6f);
  p = p * z + splat(1.126595903e-4f);
  p = p * z + splat(-8.484080406e-4f);
  p = p * z + splat(5.221031808e-3f);
  p = p * z + splat(-2.686543073e-2f);
  p = p * z + splat(1.12837825e-1f);
  p = p * z + splat(-3.761263847e-1f);
  const F small = a * (p * z + splat(1.128379167f));
  const F t = vmin(a, splat(4.0f)) - 2.5f;  // erf 4 rounds to 1
  F q = splat(1.637151415e-6f);
  q = q * t + splat(-1.33150144e-5f);
  q = q * t + splat(7.729137615e-5f);
  q = q * t + splat(-4.201225235e-4f);
  q = q * t + splat(2.165303549e-3f);
  q = q * t + splat(-1.085854164e-2f);
  q = q * t + splat(-9.438937036e-1f);
  q = q * t + splat(-5.352680674f);
  q = q * t + splat(-7.806815273f);
  const F large = 1.0f - exp_f(q);
  const F y = blend(a < splat(1.0f), small, large);
  const F with_sign = bits_as_f(f_as_i(y) | (f_as_i(x) & static_cast<std::int32_t>(0x80000000)));
  return blend(x != x, x, with_sign);
}

inline F sqrt_f(F x) {
  float lanes[kLanes];
  store(lanes, x);
  for (int i = 0; i < kLanes; ++i) lanes[i] = __builtin_sqrtf(lanes[i]);
  return load(lanes);
}

}  // namespace
}  // namespace systole::cpu::SYSTOLE_ISA
