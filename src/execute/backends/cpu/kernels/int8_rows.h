#pragma once
// Rows of x in int8, for contract_int8. For kernel sources only.

#include <immintrin.h>

#include "execute/backends/cpu/kernels/int8.h"
#include "execute/backends/cpu/kernels/row.h"

namespace systole::cpu::SYSTOLE_ISA {
namespace {

// The workspace of a call. `q`: row-major [rows, width], zeros behind k; or, for tiles, per 16 rows and 64 numbers of
// a row [16][16 rows][4]: four neighbours of each row side by side, as tdpbssd takes its second operand.
struct Int8Rows {
  float* scale;       // [rows], NaN for a row that is not finite
  std::int32_t* sum;  // [rows] of q, for vpdpbusd's correction
  std::int8_t* q;
  i64 width;  // k, padded to 64

  explicit Int8Rows(const ContractInt8Args& args) : width(int8_padded(args.k, 64)) {
    const i64 rows = int8_padded(args.rows, 32);
    scale = static_cast<float*>(args.workspace);
    sum = static_cast<std::int32_t*>(args.workspace) + rows;
    q = static_cast<std::int8_t*>(args.workspace) + 8 * rows;
  }
};

// To the nearest integer, ties to even. The masked form: gcc 12 warns of the other, which begins undefined.
inline I nearest(F x) {
#if defined(__AVX512F__)
  return reinterpret_cast<I>(_mm512_maskz_cvtps_epi32(0xffff, reinterpret_cast<__m512>(x)));
#else
  return reinterpret_cast<I>(_mm256_cvtps_epi32(reinterpret_cast<__m256>(x)));
#endif
}

// Four neighbours, as a lane of a product takes them.
inline std::int32_t four_of(const std::int8_t* q) {
  std::int32_t four;
  __builtin_memcpy(&four, q, 4);
  return four;
}

typedef std::int8_t Q __attribute__((vector_size(kLanes)));

struct RowScale {
  float scale, inverse;  // inverse 0: all numbers are 0
};
inline RowScale scale_of(const float* x, i64 k) {
  constexpr float kSmallest = 0x1p-100f;
  F top = {};
  for (i64 i = 0; i < k; i += kLanes) top = max_nan(top, vabs(get(x, i, k)));
  const float t = max_lanes(top);
  if (!(t < __builtin_inff())) return {__builtin_nanf(""), 0};
  if (t < kSmallest) return {kSmallest / 127.0f, 0};
  return {t / 127.0f, 127.0f / t};
}

// Writes a row's numbers, each 64 of them by take(i, bytes), the last ones padded with zeros; returns their sum.
template <typename Take>
inline std::int32_t quantize(const float* x, i64 k, float inverse, const Take& take) {
  I total = {};
  for (i64 i = 0; i < k; i += 64) {
    alignas(64) std::int8_t chunk[64];
#pragma GCC unroll 8
    for (int part = 0; part < 64; part += kLanes) {
      I number = {};
      if (inverse != 0 && i + part < k) number = nearest(get(x, i + part, k) * splat(inverse));
      total += number;
      const Q narrow = __builtin_convertvector(number, Q);
      __builtin_memcpy(chunk + part, &narrow, sizeof narrow);
    }
    take(i, chunk);
  }
  std::int32_t lanes[kLanes], sum = 0;
  __builtin_memcpy(lanes, &total, sizeof total);
  for (const std::int32_t lane : lanes) sum += lane;
  return sum;
}

}  // namespace
}  // namespace systole::cpu::SYSTOLE_ISA
