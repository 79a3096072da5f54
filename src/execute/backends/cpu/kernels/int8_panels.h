#pragma once
// contract_int8 by vpdpbusd for more rows of x than int8_few.h takes. A vector holds four neighbouring numbers of each
// of 16 rows of x, packed once; four numbers of a row of w, broadcast from where they lie in memory, multiply all of it:
// no sums across lanes, no packing of w. Eight rows of w by 48 rows of x stay in registers during the loop over k; each
// block of w is used for up to kTogether rows of x that stay in the second-level cache. For kernel sources only.
//
// vpdpbusd multiplies unsigned by signed numbers: x + 128 by w, and 128 times the sum of w's row is subtracted. Sums may
// wrap on the way, as i32 does; the result fits.

#include "execute/backends/cpu/kernels/int8_rows.h"
#include "execute/backends/cpu/kernels/transpose.h"

#if defined(__AVX512F__)
namespace systole::cpu::SYSTOLE_ISA {
namespace {

#define SYSTOLE_VNNI __attribute__((target("avx512vnni")))

constexpr i64 kPanel = 16;      // rows of x in a vector; columns of y whose sums are scaled together
constexpr i64 kTogether = 240;  // rows of x
constexpr int kMostPanels = 3;  // of x, in registers

// The largest |x|: as an integer, in which NaN is above infinity and so above all numbers.
inline RowScale scale_by_bits(const float* x, i64 k) {
  U top[2] = {};
  i64 i = 0;
  for (; i + 2 * kLanes <= k; i += 2 * kLanes) {
    for (int part = 0; part < 2; ++part) {
      const U bits = f_as_u(load(x + i + part * kLanes)) & 0x7fffffffU;
      top[part] = bits > top[part] ? bits : top[part];
    }
  }
  for (; i < k; i += kLanes) {
    const U bits = f_as_u(get(x, i, k)) & 0x7fffffffU;
    top[0] = bits > top[0] ? bits : top[0];
  }
  const F both = bits_as_f(top[0] > top[1] ? top[0] : top[1]);
  alignas(64) float lanes[kLanes];
  store(lanes, both);
  return scale_of(lanes, kLanes);
}

// 64 numbers of a row, plus 128; those past k are 128.
inline __m512i quantized_64(const float* x, i64 k, float inverse) {
  __m512i number[4];
#pragma GCC unroll 4
  for (int part = 0; part < 4; ++part) {
    const i64 i = part * kLanes;
    const F v = i < k ? get(x, i, k) : F{};
    number[part] = inverse != 0 ? reinterpret_cast<__m512i>(nearest(v * splat(inverse))) : _mm512_setzero_si512();
  }
  const __m512i mixed =
      _mm512_packs_epi16(_mm512_packs_epi32(number[0], number[1]), _mm512_packs_epi32(number[2], number[3]));
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return _mm512_xor_si512(_mm512_maskz_permutexvar_epi32(0xffff, order, mixed), _mm512_set1_epi8(-128));
}

// Quantises 16 rows from `first` on into x.q: [k / 4][16 rows][4].
inline void pack_panel(const ContractInt8Args& args, const Int8Rows& x, i64 first) {
  const i64 rows = lesser(kPanel, args.rows - first);
  RowScale scale[kPanel] = {};
  for (i64 r = 0; r < rows; ++r) {
    scale[r] = scale_by_bits(args.x + (first + r) * args.k, args.k);
    x.scale[first + r] = scale[r].scale;
  }
  std::int8_t* const q = x.q + first * x.width;
  for (i64 i = 0; i < args.k; i += 64) {
    F part[kLanes] = {};
    for (i64 r = 0; r < rows; ++r)
      part[r] = reinterpret_cast<F>(quantized_64(args.x + (first + r) * args.k + i, args.k - i, scale[r].inverse));
    transpose(part);
#pragma GCC unroll 16
    for (int p = 0; p < kLanes; ++p) store(reinterpret_cast<float*>(q + i * kPanel + p * 64), part[p]);
  }
}

// sum += four products of each lane. Assembly, because gcc 12 copies the sums of the intrinsic from register to register.
inline void add_products(__m512i& sum, __m512i unsigned_x, __m512i signed_w) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(unsigned_x), "v"(signed_w));
}

// sums[c][panel][16 rows] of kColumns rows of w from `w` on, and kPanels panels of x from `q` on. `next`: memory that is
// fetched meanwhile, 64 bytes a step.
template <int kColumns, int kPanels>
SYSTOLE_VNNI inline void panel_sums(const std::int8_t* w, i64 k, const std::int8_t* q, i64 width,
                                    const std::int8_t* next, std::int32_t (*sums)[kMostPanels][kPanel]) {
  __m512i sum[kColumns][kPanels];
#pragma GCC unroll 16
  for (int c = 0; c < kColumns; ++c) {
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) sum[c][p] = _mm512_setzero_si512();
  }
  const i64 panel = kPanel * width, k3 = 3 * k;
  const std::int8_t* at[4] = {w, w + 4 * k, w + 8 * k, w + 12 * k};  // each a base of four rows
  i64 i = 0;
  for (; i + 4 <= k; i += 4, q += 64, next += 64) {
    __builtin_prefetch(next);
    __m512i v[kPanels];
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) v[p] = _mm512_load_si512(q + p * panel);
#pragma GCC unroll 16
    for (int c = 0; c < kColumns; ++c) {
      const int inside = c % 4;
      const std::int8_t* const from = at[c / 4] + i + (inside == 3 ? k3 : inside * k);
      const __m512i four = _mm512_set1_epi32(four_of(from));
#pragma GCC unroll 4
      for (int p = 0; p < kPanels; ++p) add_products(sum[c][p], v[p], four);
    }
  }
  if (i < k) {
#pragma GCC unroll 16
    for (int c = 0; c < kColumns; ++c) {
      std::int32_t last = 0;
      __builtin_memcpy(&last, w + c * k + i, static_cast<std::size_t>(k - i));
#pragma GCC unroll 4
      for (int p = 0; p < kPanels; ++p)
        add_products(sum[c][p], _mm512_load_si512(q + p * panel), _mm512_set1_epi32(last));
    }
  }
#pragma GCC unroll 16
  for (int c = 0; c < kColumns; ++c) {
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) _mm512_store_si512(sums[c][p], sum[c][p]);
  }
}

// The sum of all lanes.
inline std::int32_t sum_across(U v) {
  v += __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
  v += __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11);
  v += __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
  return static_cast<std::int32_t>(v[0] + v[1]);
}

// The sum of a row of w.
SYSTOLE_VNNI inline std::int32_t sum_of_row(const std::int8_t* w, i64 k) {
  const __m512i ones = _mm512_set1_epi8(1);
  __m512i sum[2] = {_mm512_setzero_si512(), _mm512_setzero_si512()};
  i64 i = 0;
  for (; i + 128 <= k; i += 128) {
    sum[0] = _mm512_dpbusd_epi32(sum[0], ones, _mm512_loadu_si512(w + i));
    sum[1] = _mm512_dpbusd_epi32(sum[1], ones, _mm512_loadu_si512(w + i + 64));
  }
  for (; i < k; i += 64) {
    const __mmask64 mask = k - i >= 64 ? ~__mmask64{0} : (__mmask64{1} << (k - i)) - 1;
    sum[0] = _mm512_dpbusd_epi32(sum[0], ones, _mm512_maskz_loadu_epi8(mask, w + i));
  }
  return sum_across(reinterpret_cast<U>(_mm512_add_epi32(sum[0], sum[1])));
}

// A block of up to 16 columns of y by all of some rows of x.
struct ColumnBlock {
  const ContractInt8Args& args;
  const Int8Rows& x;
  i64 column, columns;
  const std::int8_t* w;
  std::int32_t correction[kPanel] = {};  // of a column: 128 times the sum of w's row

  SYSTOLE_VNNI ColumnBlock(const ContractInt8Args& given, const Int8Rows& packed, i64 first)
      : args(given), x(packed), column(first), columns(lesser(kPanel, given.n - first)), w(given.w + first * given.k) {
    for (i64 c = 0; c < columns; ++c)
      correction[c] = static_cast<std::int32_t>(128U * static_cast<std::uint32_t>(sum_of_row(w + c * args.k, args.k)));
  }

  // y of 16 rows from `row` on.
  void give(i64 row, int panel, const std::int32_t (*sums)[kMostPanels][kPanel]) const {
    F tile[kLanes];
#pragma GCC unroll 16
    for (int c = 0; c < kLanes; ++c) {
      U number;
      __builtin_memcpy(&number, sums[c][panel], sizeof number);
      tile[c] = to_float(reinterpret_cast<I>(number - static_cast<std::uint32_t>(correction[c])));
    }
    transpose(tile);
    const F scale = get(args.scale + column, 0, columns);
    const i64 rows = lesser(kPanel, args.rows - row);
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) {
      if (i < rows) put(args.y + (row + i) * args.n + column, 0, columns, splat(x.scale[row + i]) * scale * tile[i]);
    }
  }

  template <int kPanels>
  SYSTOLE_VNNI void rows(i64 row, const std::int8_t* next) const {
    alignas(64) std::int32_t sums[kPanel][kMostPanels][kPanel];
    const std::int8_t* const q = x.q + row * x.width;
    // Rows of w whole pages apart share a set of the first cache, which holds no 16 lines.
    if (kPanels == 1 && columns == kPanel && args.k % 4096 != 0) {
      panel_sums<16, 1>(w, args.k, q, x.width, next, sums);
    } else if (columns == kPanel) {
      for (int c = 0; c < kPanel; c += 8)
        panel_sums<8, kPanels>(w + c * args.k, args.k, q, x.width, next + c * args.k, sums + c);
    } else {
      for (i64 c = 0; c < columns; ++c)
        panel_sums<1, kPanels>(w + c * args.k, args.k, q, x.width, next + c * args.k, sums + c);
    }
    for (int p = 0; p < kPanels && row + p * kPanel < args.rows; ++p) give(row + p * kPanel, p, sums);
  }
};

SYSTOLE_VNNI inline void block_by_panels(const ContractInt8Args& args, const Int8Rows& x, i64 first, i64 last,
                                         i64 column) {
  const ColumnBlock block(args, x, column);
  const std::int8_t* next = block.w + kPanel * args.k;
  for (i64 row = first; row < last;) {
    const i64 panels = ceil_div(last - row, kPanel);
    if (panels >= kMostPanels && panels != 4) {
      block.rows<3>(row, next);
      row += 3 * kPanel;
    } else if (panels >= 2) {
      block.rows<2>(row, next);
      row += 2 * kPanel;
    } else {
      block.rows<1>(row, next);
      row += kPanel;
    }
  }
}

inline void contract_by_panels(const ContractInt8Args& args, const Int8Rows& x) {
  parallel(args.threads, ceil_div(args.rows, kPanel), Schedule::contiguous,
           [&](i64 part, int) { pack_panel(args, x, part * kPanel); });
  const i64 columns = ceil_div(args.n, kPanel), groups = ceil_div(args.rows, kTogether);
  parallel(args.threads, columns * groups, Schedule::contiguous, [&](i64 part, int) {
    const i64 first = part / columns * kTogether;
    block_by_panels(args, x, first, lesser(args.rows, first + kTogether), part % columns * kPanel);
  });
}

#undef SYSTOLE_VNNI

}  // namespace
}  // namespace systole::cpu::SYSTOLE_ISA
#endif
