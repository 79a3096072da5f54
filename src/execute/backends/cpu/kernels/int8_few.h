#pragma once
// contract_int8 by vpdpbusd for a few rows of x. A vector holds 64 / R neighbouring numbers of each of R rows of x,
// packed once; as many of a row of w, broadcast from where they lie in memory, multiply all of it. So no lane is idle
// with few rows, and w is not packed. Up to three such vectors and 8 or 16 rows of w stay in registers during the loop
// over k; what lies across the lanes is added while the sums are transposed.
//
// vpdpbusd multiplies unsigned by signed numbers: w + 128 by x, and 128 times the sum of x is subtracted. Sums may wrap
// on the way, as i32 does; the result fits. For kernel sources only.

#include "execute/backends/cpu/kernels/int8_panels.h"

#if defined(__AVX512F__)
namespace systole::cpu::SYSTOLE_ISA {
namespace {

#define SYSTOLE_VNNI __attribute__((target("avx512vnni")))

// Rows of x in a vector, and vectors: the least work that takes `rows`, by measurement on a Zen 5 (November 2026). Rows
// that are not there are zeros: a second pass over w for the last ones costs more.
struct FewShape {
  i64 rows, panels;
};
inline FewShape few_shape(i64 rows) {
  if (rows <= 1) return {1, 1};
  if (rows <= 2) return {2, 1};
  if (rows <= 4) return {2, 2};
  if (rows <= 6) return {2, 3};
  if (rows <= 8) return {4, 2};
  if (rows <= 10) return {2, 5};
  if (rows <= 12) return {4, 3};
  if (rows <= 16) return {8, 2};
  if (rows <= 20) return {4, 5};
  return {8, 3};
}
static_assert(kPanelRows == 25, "few_shape takes as many rows less one");

// Quantises row `row`, or makes zeros of it behind the last one, into its panel of x.q: [k / kStep][kRows][kStep].
template <int kRows>
SYSTOLE_VNNI inline void pack_few(const ContractInt8Args& args, const Int8Rows& x, i64 row) {
  constexpr i64 kStep = 64 / kRows;
  const __m512i flip = _mm512_set1_epi8(-128), ones = _mm512_set1_epi8(1);
  std::int8_t* const q = x.q + row / kRows * kRows * x.width + row % kRows * kStep;
  const bool there = row < args.rows;
  const float* const from = args.x + row * args.k;
  const RowScale scale = there ? scale_by_bits(from, args.k) : RowScale{0, 0};
  __m512i sum = _mm512_setzero_si512();
  for (i64 i = 0; i < args.k; i += 64) {
    __m512i v = flip;
    if (there) v = quantized_64(from + i, args.k - i, scale.inverse);
    add_products(sum, v, ones);
    v = _mm512_xor_si512(v, flip);
    alignas(64) std::int8_t numbers[64];
    __builtin_memcpy(numbers, &v, 64);
#pragma GCC unroll 8
    for (i64 part = 0; part < kRows; ++part) __builtin_memcpy(q + i * kRows + part * 64, numbers + part * kStep, kStep);
  }
  x.scale[row] = scale.scale;
  x.sum[row] = sum_across(reinterpret_cast<U>(sum)) - static_cast<std::int32_t>(128 * x.width);
}

// 64 / kRows numbers, kRows times; with `left`, so many of them and zeros.
template <int kRows>
inline __m512i spread(const std::int8_t* w) {
  if constexpr (kRows == 8) {
    std::int64_t eight;
    __builtin_memcpy(&eight, w, 8);
    return _mm512_set1_epi64(eight);
  } else if constexpr (kRows == 4) {
    return _mm512_maskz_broadcast_i32x4(0xffff, _mm_loadu_si128(reinterpret_cast<const __m128i*>(w)));
  } else if constexpr (kRows == 2) {
    return _mm512_maskz_broadcast_i64x4(0xff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(w)));
  } else {
    return _mm512_loadu_si512(w);
  }
}
template <int kRows>
inline __m512i spread(const std::int8_t* w, i64 left) {
  alignas(64) std::int8_t some[64 / kRows] = {};
  __builtin_memcpy(some, w, static_cast<std::size_t>(left));
  return spread<kRows>(some);
}

// sums[p][c] of kColumns rows of w from `w` on and of kPanels panels of x from q on. `next`: memory that is fetched
// meanwhile, as much as is read.
template <int kRows, int kPanels, int kColumns>
SYSTOLE_VNNI inline void few_sums(const std::int8_t* w, i64 k, const std::int8_t* q, i64 panel, const std::int8_t* next,
                                  U (&sums)[kPanels][kPanel], i64 first) {
  constexpr i64 kStep = 64 / kRows, kBytes = kStep * kColumns;
  const __m512i flip = _mm512_set1_epi8(-128);
  __m512i sum[kPanels][kColumns];
#pragma GCC unroll 16
  for (int c = 0; c < kColumns; ++c) {
#pragma GCC unroll 5
    for (int p = 0; p < kPanels; ++p) sum[p][c] = _mm512_setzero_si512();
  }
  const i64 k3 = 3 * k;
  const std::int8_t* at[4] = {w, w + 4 * k, w + 8 * k, w + 12 * k};  // each a base of four rows
  const auto row_of_w = [&](int c, i64 i) { return at[c / 4] + i + (c % 4 == 3 ? k3 : c % 4 * k); };
  i64 i = 0;
  for (; i + kStep <= k; i += kStep, q += 64, next += kBytes) {
#pragma GCC unroll 16
    for (i64 byte = 0; byte < kBytes; byte += 64) __builtin_prefetch(next + byte);
    __m512i v[kPanels];
#pragma GCC unroll 5
    for (int p = 0; p < kPanels; ++p) v[p] = _mm512_load_si512(q + p * panel);
#pragma GCC unroll 16
    for (int c = 0; c < kColumns; ++c) {
      const __m512i numbers = _mm512_xor_si512(spread<kRows>(row_of_w(c, i)), flip);
#pragma GCC unroll 5
      for (int p = 0; p < kPanels; ++p) add_products(sum[p][c], numbers, v[p]);
    }
  }
  if (i < k) {
#pragma GCC unroll 16
    for (int c = 0; c < kColumns; ++c) {
      const __m512i numbers = _mm512_xor_si512(spread<kRows>(row_of_w(c, i), k - i), flip);
#pragma GCC unroll 5
      for (int p = 0; p < kPanels; ++p) add_products(sum[p][c], numbers, _mm512_load_si512(q + p * panel));
    }
  }
#pragma GCC unroll 5
  for (int p = 0; p < kPanels; ++p) {
#pragma GCC unroll 16
    for (int c = 0; c < kColumns; ++c) __builtin_memcpy(&sums[p][first + c], &sum[p][c], 64);
  }
}

// Two of four numbers of each of a's and b's quarters.
template <int kA, int kB, int kC, int kD>
inline U quarters(U a, U b) {
  const auto of = [](int lane, int quarter) { return lane < 4 ? lane + 4 * quarter : lane + 12 + 4 * quarter; };
  return __builtin_shufflevector(a, b, of(kA, 0), of(kB, 0), of(kC, 0), of(kD, 0), of(kA, 1), of(kB, 1), of(kC, 1),
                                 of(kD, 1), of(kA, 2), of(kB, 2), of(kC, 2), of(kD, 2), of(kA, 3), of(kB, 3), of(kC, 3),
                                 of(kD, 3));
}

// The quarters of four vectors, transposed.
inline void transpose_quarters(U (&v)[4]) {
  const auto low = [](U a, U b) {
    return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
  };
  const auto high = [](U a, U b) {
    return __builtin_shufflevector(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
  };
  const auto even = [](U a, U b) {
    return __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
  };
  const auto odd = [](U a, U b) {
    return __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
  };
  const U a = low(v[0], v[1]), b = low(v[2], v[3]), c = high(v[0], v[1]), d = high(v[2], v[3]);
  v[0] = even(a, b);
  v[1] = odd(a, b);
  v[2] = even(c, d);
  v[3] = odd(c, d);
}

// rows[r][c] of a panel from the sums of 16 columns: those of row r are in 16 / kRows lanes.
template <int kRows>
inline void fold_few(const U* sums, U* rows) {
  U quads[kRows == 8 ? 2 : 1][4];  // of four columns: a quarter has one row's, or parts of it
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const U *const s = sums + 4 * i, a = s[0], b = s[1], c = s[2], d = s[3];
    if constexpr (kRows == 8) {
      const U ab[2] = {quarters<0, 1, 4, 5>(a, b), quarters<2, 3, 6, 7>(a, b)},
              cd[2] = {quarters<0, 1, 4, 5>(c, d), quarters<2, 3, 6, 7>(c, d)};
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half)
        quads[half][i] = quarters<0, 2, 4, 6>(ab[half], cd[half]) + quarters<1, 3, 5, 7>(ab[half], cd[half]);
    } else {
      const U ab = quarters<0, 4, 1, 5>(a, b) + quarters<2, 6, 3, 7>(a, b),
              cd = quarters<0, 4, 1, 5>(c, d) + quarters<2, 6, 3, 7>(c, d);
      quads[0][i] = quarters<0, 1, 4, 5>(ab, cd) + quarters<2, 3, 6, 7>(ab, cd);
    }
  }
  transpose_quarters(quads[0]);
  if constexpr (kRows == 8) transpose_quarters(quads[1]);
  const auto& q = quads[0];
  if constexpr (kRows == 1) rows[0] = (q[0] + q[1]) + (q[2] + q[3]);
#pragma GCC unroll 8
  for (int r = 0; r < kRows && kRows > 1; ++r) {
    if constexpr (kRows == 8) rows[r] = quads[r % 2][r / 2];
    if constexpr (kRows == 4) rows[r] = q[r];
    if constexpr (kRows == 2) rows[r] = q[2 * r] + q[2 * r + 1];
  }
}

// y of all rows and up to 16 columns.
template <int kRows, int kPanels>
SYSTOLE_VNNI inline void few_block(const ContractInt8Args& args, const Int8Rows& x, i64 column) {
  const i64 columns = lesser(kPanel, args.n - column), k = args.k, panel = kRows * x.width;
  const std::int8_t *const w = args.w + column * k, *const next = w + kPanel * k;
  U sums[kPanels][kPanel] = {}, rows[kPanels * kRows];
  // Rows of w whole pages apart share a set of the first cache, which holds no 16 lines.
  if (kPanels == 1 && columns == kPanel && k % 4096 != 0) {
    few_sums<kRows, kPanels, 16>(w, k, x.q, panel, next, sums, 0);
  } else if (columns == kPanel) {
    constexpr int kColumns = kPanels > 3 ? 4 : 8;
    for (i64 c = 0; c < kPanel; c += kColumns)
      few_sums<kRows, kPanels, kColumns>(w + c * k, k, x.q, panel, next + c * k, sums, c);
  } else {
    for (i64 c = 0; c < columns; ++c) few_sums<kRows, kPanels, 1>(w + c * k, k, x.q, panel, next + c * k, sums, c);
  }
#pragma GCC unroll 5
  for (int p = 0; p < kPanels; ++p) fold_few<kRows>(sums[p], rows + p * kRows);
  const F scale = get(args.scale + column, 0, columns);
  for (i64 r = 0; r < args.rows; ++r) {
    const F number = to_float(reinterpret_cast<I>(rows[r] - 128U * static_cast<std::uint32_t>(x.sum[r])));
    put(args.y + r * args.n + column, 0, columns, splat(x.scale[r]) * scale * number);
  }
}

template <int kRows, int kPanels>
inline void contract_few(const ContractInt8Args& args, const Int8Rows& x) {
  parallel_blocks(args.threads, kRows * kPanels, rows_per_part(args.k * 4), [&](i64 begin, i64 end) {
    for (i64 row = begin; row < end; ++row) pack_few<kRows>(args, x, row);
  });
  parallel(args.threads, ceil_div(args.n, kPanel), Schedule::contiguous,
           [&](i64 part, int) { few_block<kRows, kPanels>(args, x, part * kPanel); });
}

inline void contract_by_few(const ContractInt8Args& args, const Int8Rows& x) {
  const FewShape shape = few_shape(args.rows);
  switch (shape.rows * 8 + shape.panels) {
    case 8 + 1: return contract_few<1, 1>(args, x);
    case 16 + 1: return contract_few<2, 1>(args, x);
    case 16 + 2: return contract_few<2, 2>(args, x);
    case 16 + 3: return contract_few<2, 3>(args, x);
    case 16 + 5: return contract_few<2, 5>(args, x);
    case 32 + 2: return contract_few<4, 2>(args, x);
    case 32 + 3: return contract_few<4, 3>(args, x);
    case 32 + 5: return contract_few<4, 5>(args, x);
    case 64 + 2: return contract_few<8, 2>(args, x);
    default: return contract_few<8, 3>(args, x);
  }
}

#undef SYSTOLE_VNNI

}  // namespace
}  // namespace systole::cpu::SYSTOLE_ISA
#endif
