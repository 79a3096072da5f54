// contract_int8: a part of w's rows (columns of y) per thread, so that each byte of w is read once per call for few
// rows of x. Roofline: memory's bandwidth for few rows, the units' rate for many. vpdpbusd takes the rows packed
// (int8_few.h, int8_panels.h), as AMX does from kAmxRows rows on (int8_tiles.h). Otherwise four rows of w are read side
// by side, and each vector of them is used for up to four rows of x.

#include "execute/backends/cpu/kernels/int8.h"

#include "execute/backends/cpu/kernels/entry.h"
#include "execute/backends/cpu/kernels/int8_few.h"
#include "execute/backends/cpu/kernels/int8_panels.h"
#include "execute/backends/cpu/kernels/int8_rows.h"
#include "execute/backends/cpu/kernels/int8_tiles.h"

namespace systole::cpu::SYSTOLE_ISA {
namespace {

constexpr int kColumns = 4;
constexpr i64 kAhead = 1024;  // bytes of prefetching

// y[row, column…] of up to kColumns sums: (s * scale) * sum, in this order.
inline void give(const ContractInt8Args& args, const Int8Rows& x, i64 row, i64 column, __m128i sums) {
  float* const y = args.y + row * args.n + column;
  const __m128 numbers = _mm_cvtepi32_ps(sums), s = _mm_set1_ps(x.scale[row]);
  if (column + kColumns <= args.n) {
    _mm_storeu_ps(y, _mm_mul_ps(_mm_mul_ps(s, _mm_loadu_ps(args.scale + column)), numbers));
    return;
  }
  float some[kColumns];
  _mm_storeu_ps(some, numbers);
  for (i64 c = 0; c < args.n - column; ++c) y[c] = x.scale[row] * args.scale[column + c] * some[c];
}

// The rows of w for columns from `column` on; behind the last one, the last one again.
inline void rows_of_w(const ContractInt8Args& args, i64 column, const std::int8_t* (&w)[kColumns]) {
  for (int c = 0; c < kColumns; ++c) w[c] = args.w + lesser(column + c, args.n - 1) * args.k;
}

#if defined(__AVX512F__)
constexpr int kMostRows = 4;
#define SYSTOLE_VNNI __attribute__((target("avx512vnni")))

// The sums of the lanes of four vectors. Masked forms: gcc 12 warns of the others, which begin undefined.
inline __m128i sums_of(__m512i a, __m512i b, __m512i c, __m512i d) {
  constexpr __mmask16 kAll = 0xffff;
  constexpr __mmask8 kHalf = 0xff;
  const __m512i ab = _mm512_add_epi32(_mm512_maskz_unpacklo_epi32(kAll, a, b), _mm512_maskz_unpackhi_epi32(kAll, a, b));
  const __m512i cd = _mm512_add_epi32(_mm512_maskz_unpacklo_epi32(kAll, c, d), _mm512_maskz_unpackhi_epi32(kAll, c, d));
  const __m512i all =
      _mm512_add_epi32(_mm512_maskz_unpacklo_epi64(kHalf, ab, cd), _mm512_maskz_unpackhi_epi64(kHalf, ab, cd));
  const __m256i half =
      _mm256_add_epi32(_mm512_maskz_extracti64x4_epi64(kHalf, all, 0), _mm512_maskz_extracti64x4_epi64(kHalf, all, 1));
  return _mm_add_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
}

// vpdpbusd multiplies unsigned by signed numbers: w + 128 by x, and 128 times the sum of x is subtracted.
template <int kRows>
SYSTOLE_VNNI inline void vnni_block(const ContractInt8Args& args, const Int8Rows& x, i64 row, i64 column) {
  const std::int8_t* w[kColumns];
  rows_of_w(args, column, w);
  const std::int8_t* const q = x.q + row * x.width;
  const __m512i flip = _mm512_set1_epi8(-128);
  __m512i sum[kRows][kColumns];
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kColumns; ++c) sum[r][c] = _mm512_setzero_si512();
  }
  i64 i = 0;
  for (; i + 64 <= args.k; i += 64) {
#pragma GCC unroll 4
    for (int c = 0; c < kColumns; ++c) {
      __builtin_prefetch(w[c] + i + kAhead);
      const __m512i v = _mm512_xor_si512(_mm512_loadu_si512(w[c] + i), flip);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r)
        sum[r][c] = _mm512_dpbusd_epi32(sum[r][c], v, _mm512_load_si512(q + r * x.width + i));
    }
  }
  if (i < args.k) {
    const __mmask64 mask = (__mmask64{1} << (args.k - i)) - 1;
    for (int c = 0; c < kColumns; ++c) {
      const __m512i v = _mm512_xor_si512(_mm512_maskz_loadu_epi8(mask, w[c] + i), flip);
      for (int r = 0; r < kRows; ++r)
        sum[r][c] = _mm512_dpbusd_epi32(sum[r][c], v, _mm512_load_si512(q + r * x.width + i));
    }
  }
  for (int r = 0; r < kRows; ++r) {
    const __m128i sums = sums_of(sum[r][0], sum[r][1], sum[r][2], sum[r][3]);
    give(args, x, row + r, column, _mm_sub_epi32(sums, _mm_set1_epi32(x.sum[row + r] * 128)));
  }
}

SYSTOLE_VNNI inline void vnni_rows(const ContractInt8Args& args, const Int8Rows& x, i64 row, i64 rows, i64 column) {
  if (rows >= 4) return vnni_block<4>(args, x, row, column);
  if (rows == 3) return vnni_block<3>(args, x, row, column);
  if (rows == 2) return vnni_block<2>(args, x, row, column);
  vnni_block<1>(args, x, row, column);
}
#undef SYSTOLE_VNNI
#endif

// Columns from `column` on of kRows rows: 1 or 2.
template <int kRows>
struct Pairs {
  const std::int8_t* q;
  i64 width;
  __m256i sum[kRows][kColumns];

  // Adds 32 products of each sum, of w's numbers from i on and x's from at on.
  inline __attribute__((always_inline)) void add(const std::int8_t* const (&w)[kColumns], i64 i, i64 at) {
    const auto of_x = [&](int r, i64 further) { return q + r * width + at + further; };
    if constexpr (kRows == 1) {
      // |w| by x with w's sign: the sum of two products is at most 2 * 128 * 127, which i16 holds.
      const __m256i x = _mm256_load_si256(reinterpret_cast<const __m256i*>(of_x(0, 0))), ones = _mm256_set1_epi16(1);
#pragma GCC unroll 4
      for (int c = 0; c < kColumns; ++c) {
        const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(w[c] + i));
        const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(v), _mm256_sign_epi8(x, v));
        sum[0][c] = _mm256_add_epi32(sum[0][c], _mm256_madd_epi16(pairs, ones));
      }
    } else {
      // Of two rows it takes less to widen the numbers of both sides.
#pragma GCC unroll 2
      for (i64 half = 0; half < 32; half += 16) {
        __m256i x[kRows];
#pragma GCC unroll 2
        for (int r = 0; r < kRows; ++r)
          x[r] = _mm256_cvtepi8_epi16(_mm_load_si128(reinterpret_cast<const __m128i*>(of_x(r, half))));
#pragma GCC unroll 4
        for (int c = 0; c < kColumns; ++c) {
          const __m256i v = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(w[c] + i + half)));
#pragma GCC unroll 2
          for (int r = 0; r < kRows; ++r) {
            sum[r][c] = _mm256_add_epi32(sum[r][c], _mm256_madd_epi16(v, x[r]));
            asm("" : "+x"(sum[r][c]));  // gcc 12 adds both halves first, and runs out of registers
          }
        }
      }
    }
  }
};

template <int kRows>
inline void pairs_block(const ContractInt8Args& args, const Int8Rows& x, i64 row, i64 column) {
  const std::int8_t* w[kColumns];
  rows_of_w(args, column, w);
  Pairs<kRows> pairs{x.q + row * x.width, x.width, {}};
  i64 i = 0;
  for (; i + 32 <= args.k; i += 32) {
#pragma GCC unroll 4
    for (int c = 0; c < kColumns; ++c) __builtin_prefetch(w[c] + i + kAhead);
    pairs.add(w, i, i);
  }
  if (i < args.k) {
    std::int8_t rest[kColumns][32] = {};
    for (int c = 0; c < kColumns; ++c) __builtin_memcpy(rest[c], w[c] + i, static_cast<std::size_t>(args.k - i));
    pairs.add({rest[0], rest[1], rest[2], rest[3]}, 0, i);
  }
#pragma GCC unroll 2
  for (int r = 0; r < kRows; ++r) {
    const __m256i(&sum)[kColumns] = pairs.sum[r];
    const __m256i all = _mm256_hadd_epi32(_mm256_hadd_epi32(sum[0], sum[1]), _mm256_hadd_epi32(sum[2], sum[3]));
    give(args, x, row + r, column, _mm_add_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1)));
  }
}

// Columns [first, last), four at a time, by all rows.
inline void columns_by_rows(const ContractInt8Args& args, const Int8Rows& x, i64 first, i64 last) {
  for (i64 column = first; column < last; column += kColumns) {
#if defined(__AVX512F__)
    if (args.unit != Int8Unit::pairs) {
      for (i64 row = 0; row < args.rows; row += kMostRows) vnni_rows(args, x, row, args.rows - row, column);
      continue;
    }
#endif
    i64 row = 0;
    for (; row + 2 <= args.rows; row += 2) pairs_block<2>(args, x, row, column);
    if (row < args.rows) pairs_block<1>(args, x, row, column);
  }
}

inline void contract_by_rows(const ContractInt8Args& args, const Int8Rows& x) {
  parallel_blocks(args.threads, args.rows, rows_per_part(args.k * 4), [&](i64 begin, i64 end) {
    for (i64 row = begin; row < end; ++row) {
      const float* const from = args.x + row * args.k;
      const RowScale scale = scale_of(from, args.k);
      x.scale[row] = scale.scale;
      std::int8_t* const q = x.q + row * x.width;
      x.sum[row] = quantize(from, args.k, scale.inverse,
                            [&](i64 i, const std::int8_t* chunk) { __builtin_memcpy(q + i, chunk, 64); });
    }
  });
  const i64 columns = ceil_div(rows_per_part(args.k), kColumns) * kColumns;
  parallel_blocks(args.threads, args.n, columns, [&](i64 begin, i64 end) { columns_by_rows(args, x, begin, end); });
}

}  // namespace

KernelReport contract_int8(const ContractInt8Args& args) {
  const Int8Rows x(args);
  if (args.n > 0 && args.rows > 0) {
#if defined(__AVX512F__)
    if (args.unit == Int8Unit::amx && args.rows >= kAmxRows) {
      contract_by_tiles(args, x);
    } else if (args.unit == Int8Unit::vnni && args.rows >= kPanelRows) {
      contract_by_panels(args, x);
    } else if (args.unit == Int8Unit::vnni) {
      contract_by_few(args, x);
    } else {
      contract_by_rows(args, x);
    }
#else
    contract_by_rows(args, x);
#endif
  }
  const i64 results = args.rows * args.n;
  return {results * (2 * args.k + 2) + args.rows * (args.k + 2), 0,          0, 0,
          args.rows * args.k * 4 + args.n * (args.k + 4),        results * 4};
}

KernelReport embedding_int8(const EmbeddingInt8Args& args) {
  const i64 e = args.width;
  i64 outside = 0;
  for (i64 i = 0; i < args.num_ids; ++i) outside += args.ids[i] < 0 || args.ids[i] >= args.vocab ? 1 : 0;
  parallel_blocks(args.threads, args.num_ids, rows_per_part(e * 4), [&](i64 begin, i64 end) {
    for (i64 i = begin; i < end; ++i) {
      float* const y = args.y + i * e;
      const i64 id = args.ids[i];
      if (id >= 0 && id < args.vocab) {
        const std::int8_t* const row = args.table + id * e;
        const float scale = args.scale[id];
        for (i64 j = 0; j < e; ++j) y[j] = scale * static_cast<float>(row[j]);
      } else {
        __builtin_memset(y, 0, static_cast<std::size_t>(e) * 4);
      }
    }
  });
  return {
      (args.num_ids - outside) * e, 0, outside * e, 0, args.num_ids * 4 + lesser(args.vocab, args.num_ids) * (e + 4),
      args.num_ids * e * 4};
}

}  // namespace systole::cpu::SYSTOLE_ISA
