// rotary: computes cosines and sines once per token, for all its heads. Angles are f64: position · θ^(-2i/d) needs more
// digits than f32 has at long contexts. Roofline: memory.
//
// sin and cos in f64: subtracts the nearest multiple of π/2 in three parts (Cody and Waite; exact to 2^-75 |k|, so the
// error stays below 1e-12 for positions up to 2^30), then Taylor to r^15 and r^16 on |r| ≤ π/4 (rest below 1e-17).

#include "execute/backends/cpu/kernels/entry.h"
#include "execute/backends/cpu/kernels/row.h"

namespace systole::cpu::SYSTOLE_ISA {
namespace {

inline void sin_cos(double x, double* sin, double* cos) {
  const double k = __builtin_rint(x * 0.63661977236758134308);
  double r = x - k * 1.5707963267341256142;  // 33 bits: its product with k is exact
  r -= k * 6.0771005063039659766e-11;
  r -= k * 2.0222662487959505912e-21;
  const double z = r * r;
  const double s =
      r +
      r * z *
          (-1.0 / 6 +
           z * (1.0 / 120 + z * (-1.0 / 5040 + z * (1.0 / 362880 + z * (-1.0 / 39916800 +
                                                                        z * (1.0 / 6227020800 - z / 1307674368000))))));
  const double c =
      1 - z / 2 +
      z * z *
          (1.0 / 24 +
           z * (-1.0 / 720 + z * (1.0 / 40320 + z * (-1.0 / 3628800 + z * (1.0 / 479001600 - z / 87178291200)))));
  const int quadrant = static_cast<int>(static_cast<std::int64_t>(k) & 3);
  const double a = (quadrant & 1) != 0 ? c : s, b = (quadrant & 1) != 0 ? s : c;
  *sin = (quadrant & 2) != 0 ? -a : a;
  *cos = ((quadrant + 1) & 2) != 0 ? -b : b;
}

inline double stretched(double frequency, const RotaryStretch& r) {
  double s = (frequency * (r.original_context / 6.28318530717958647693) - r.low_freq_factor) /
             (r.high_freq_factor - r.low_freq_factor);
  s = s < 0 ? 0 : s > 1 ? 1 : s;
  return frequency * (s + (1 - s) / r.factor);
}

template <typename T>
void rotate_token(const RotaryArgs& args, const double* frequency, i64 token) {
  const i64 half = args.d / 2;
  float c[kMaxRotaryWidth / 2], s[kMaxRotaryWidth / 2];
  const double position =
      args.inverse ? -static_cast<double>(args.positions[token]) : static_cast<double>(args.positions[token]);
  for (i64 i = 0; i < half; ++i) {
    double sin, cos;
    sin_cos(position * frequency[i], &sin, &cos);
    s[i] = static_cast<float>(sin);
    c[i] = static_cast<float>(cos);
  }
  for (i64 head = 0; head < args.heads; ++head) {
    const T* x = static_cast<const T*>(args.x) + (token * args.heads + head) * args.d;
    T* y = static_cast<T*>(args.y) + (token * args.heads + head) * args.d;
    for (i64 i = 0; i < half; i += kLanes) {
      const F low = get(x, i, half), high = get(x + half, i, half), cs = get(c, i, half), sn = get(s, i, half);
      put(y, i, half, low * cs - high * sn);
      put(y + half, i, half, high * cs + low * sn);
    }
  }
}

}  // namespace

KernelReport rotary(const RotaryArgs& args) {
  const i64 half = args.d / 2;
  double frequency[kMaxRotaryWidth / 2];
  const bool stretch = args.stretch.factor != 0;
  for (i64 i = 0; i < half; ++i) {
    frequency[i] = __builtin_pow(args.theta, static_cast<double>(-2 * i) / static_cast<double>(args.d));
    if (stretch) frequency[i] = stretched(frequency[i], args.stretch);
  }
  visit_float(args.elem, [&](auto* type) {
    using T = typename Pointee<decltype(type)>::type;
    parallel_blocks(args.threads, args.tokens, rows_per_part(args.heads * args.d * 4), [&](i64 begin, i64 end) {
      for (i64 token = begin; token < end; ++token) rotate_token<T>(args, frequency, token);
    });
  });
  const i64 bytes = args.tokens * args.heads * args.d * size_of(args.elem);
  const i64 flops = args.tokens * half * (1 + 6 * args.heads) + (stretch ? 7 * half : 0);
  return {flops, half * (1 + 2 * args.tokens), 0, 0, bytes + args.tokens * 4, bytes};
}

}  // namespace systole::cpu::SYSTOLE_ISA
