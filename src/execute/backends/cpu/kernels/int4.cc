// contract_int4: a part of w's panels (16 columns of y each) per thread, so that each byte of w is read once per call for
// few rows of x. Roofline: memory's bandwidth for few rows, the units' rate for many. A group of a panel is 4 vectors of
// codes; the four bits of each are taken apart once for all rows of a block, whose quantised numbers are broadcast four
// at a time. No sums across lanes: a lane is a column.

#include "execute/backends/cpu/kernels/int4.h"

#include "execute/backends/cpu/kernels/entry.h"
#include "execute/backends/cpu/kernels/int8_rows.h"

namespace systole::cpu::SYSTOLE_ISA {
namespace {

constexpr i64 kGroup = 32, kPanel = 16, kCodes = 256, kScales = 32;
constexpr i64 kAhead = 2048;           // bytes of prefetching
constexpr i64 kNear = i64{256} << 10;  // bytes of quantised rows

// The workspace of a call.
struct Int4Rows {
  std::int8_t* q;  // [rows, k]
  float* scale;    // [rows, groups]: NaN for a group that is not finite
  float* total;    // [rows, groups]: the scale times the sum of the group's q
  i64 groups;

  explicit Int4Rows(const ContractInt4Args& args) : groups(args.k / kGroup) {
    q = static_cast<std::int8_t*>(args.workspace);
    scale = reinterpret_cast<float*>(q + args.rows * args.k);
    total = scale + args.rows * groups;
  }
};

inline void quantize_groups(const ContractInt4Args& args, const Int4Rows& x, i64 row) {
  for (i64 g = 0; g < x.groups; ++g) {
    const float* const from = args.x + row * args.k + g * kGroup;
    std::int8_t* const q = x.q + row * args.k + g * kGroup;
    const RowScale scale = scale_of(from, kGroup);
    I sum = {};
    for (int part = 0; part < kGroup; part += kLanes) {
      I number = {};
      if (scale.inverse != 0) number = nearest(load(from + part) * splat(scale.inverse));
      sum += number;
      const Q narrow = __builtin_convertvector(number, Q);
      __builtin_memcpy(q + part, &narrow, sizeof narrow);
    }
    std::int32_t lanes[kLanes], all = 0;
    __builtin_memcpy(lanes, &sum, sizeof sum);
    for (const std::int32_t lane : lanes) all += lane;
    x.scale[row * x.groups + g] = scale.scale;
    x.total[row * x.groups + g] = scale.scale * static_cast<float>(all);
  }
}

#if defined(__AVX512F__)
#define SYSTOLE_VNNI __attribute__((target("avx512vnni")))

inline __m512 halves(const std::uint16_t* from) {
  return _mm512_maskz_cvtph_ps(0xffff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}

// y of kRows rows and a panel.
template <int kRows>
SYSTOLE_VNNI inline void vnni_block(const ContractInt4Args& args, const Int4Rows& x, i64 row, i64 panel) {
  const std::uint8_t* w = args.w + panel * x.groups * kCodes;
  const std::uint16_t* scales = args.scales + panel * x.groups * kScales;
  const std::int8_t* const q = x.q + row * args.k;
  const float *const s = x.scale + row * x.groups, *const t = x.total + row * x.groups;
  const __m512i low = _mm512_set1_epi8(15);
  __m512 a[kRows], b[kRows];
  for (int r = 0; r < kRows; ++r) a[r] = b[r] = _mm512_setzero_ps();
  for (i64 g = 0; g < x.groups; ++g, w += kCodes, scales += kScales) {
    __m512i lows[4], highs[4];
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) {
      __builtin_prefetch(w + v * 64 + kAhead);
      const __m512i both = _mm512_loadu_si512(w + v * 64);
      lows[v] = _mm512_and_si512(both, low);
      highs[v] = _mm512_and_si512(_mm512_maskz_srli_epi16(~__mmask32{0}, both, 4), low);
    }
    __builtin_prefetch(scales + kAhead / 8);
    const __m512 d = halves(scales), m = halves(scales + kPanel);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const std::int8_t* const p = q + r * args.k + g * kGroup;
      __m512i first = _mm512_setzero_si512(), second = _mm512_setzero_si512();
#pragma GCC unroll 4
      for (int v = 0; v < 4; ++v) {
        first = _mm512_dpbusd_epi32(first, lows[v], _mm512_set1_epi32(four_of(p + 4 * v)));
        second = _mm512_dpbusd_epi32(second, highs[v], _mm512_set1_epi32(four_of(p + 16 + 4 * v)));
      }
      const __m512 sum = _mm512_maskz_cvtepi32_ps(0xffff, _mm512_add_epi32(first, second));
      a[r] = _mm512_fmadd_ps(_mm512_mul_ps(d, _mm512_set1_ps(s[r * x.groups + g])), sum, a[r]);
      b[r] = _mm512_fmadd_ps(m, _mm512_set1_ps(t[r * x.groups + g]), b[r]);
    }
  }
  for (int r = 0; r < kRows; ++r)
    _mm512_storeu_ps(args.y + (row + r) * args.n + panel * kPanel, _mm512_add_ps(a[r], b[r]));
}

SYSTOLE_VNNI inline void vnni_panel(const ContractInt4Args& args, const Int4Rows& x, i64 row, i64 last, i64 panel) {
  for (; row + 8 <= last; row += 8) vnni_block<8>(args, x, row, panel);
  switch (last - row) {
    case 1: return vnni_block<1>(args, x, row, panel);
    case 2: return vnni_block<2>(args, x, row, panel);
    case 3: return vnni_block<3>(args, x, row, panel);
    case 4: return vnni_block<4>(args, x, row, panel);
    case 5: return vnni_block<5>(args, x, row, panel);
    case 6: return vnni_block<6>(args, x, row, panel);
    case 7: return vnni_block<7>(args, x, row, panel);
    default: return;
  }
}
#undef SYSTOLE_VNNI
#endif

inline __m256 eight_halves(const std::uint16_t* from) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}

// y of kRows rows and half a panel. The eight products that a lane of i16 takes are at most 8 * 2 * 15 * 127.
template <int kRows>
inline void pairs_block(const ContractInt4Args& args, const Int4Rows& x, i64 row, i64 panel, i64 half) {
  const std::uint8_t* w = args.w + panel * x.groups * kCodes + half * 32;
  const std::uint16_t* scales = args.scales + panel * x.groups * kScales + half * 8;
  const std::int8_t* const q = x.q + row * args.k;
  const float *const s = x.scale + row * x.groups, *const t = x.total + row * x.groups;
  const __m256i low = _mm256_set1_epi8(15), ones = _mm256_set1_epi16(1);
  __m256 a[kRows], b[kRows];
  for (int r = 0; r < kRows; ++r) a[r] = b[r] = _mm256_setzero_ps();
  for (i64 g = 0; g < x.groups; ++g, w += kCodes, scales += kScales) {
    __m256i sum[kRows];
    for (int r = 0; r < kRows; ++r) sum[r] = _mm256_setzero_si256();
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) {
      __builtin_prefetch(w + v * 64 + kAhead);
      const __m256i both = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(w + v * 64));
      const __m256i lows = _mm256_and_si256(both, low), highs = _mm256_and_si256(_mm256_srli_epi16(both, 4), low);
#pragma GCC unroll 2
      for (int r = 0; r < kRows; ++r) {
        const std::int8_t* const p = q + r * args.k + g * kGroup + 4 * v;
        sum[r] = _mm256_add_epi16(sum[r], _mm256_maddubs_epi16(lows, _mm256_set1_epi32(four_of(p))));
        sum[r] = _mm256_add_epi16(sum[r], _mm256_maddubs_epi16(highs, _mm256_set1_epi32(four_of(p + 16))));
      }
    }
    const __m256 d = eight_halves(scales), m = eight_halves(scales + kPanel);
    for (int r = 0; r < kRows; ++r) {
      const __m256 number = _mm256_cvtepi32_ps(_mm256_madd_epi16(sum[r], ones));
      a[r] = _mm256_fmadd_ps(_mm256_mul_ps(d, _mm256_set1_ps(s[r * x.groups + g])), number, a[r]);
      b[r] = _mm256_fmadd_ps(m, _mm256_set1_ps(t[r * x.groups + g]), b[r]);
    }
  }
  for (int r = 0; r < kRows; ++r)
    _mm256_storeu_ps(args.y + (row + r) * args.n + panel * kPanel + half * 8, _mm256_add_ps(a[r], b[r]));
}

inline void pairs_panel(const ContractInt4Args& args, const Int4Rows& x, i64 first, i64 last, i64 panel) {
  for (i64 half = 0; half < 2; ++half) {
    i64 row = first;
    for (; row + 2 <= last; row += 2) pairs_block<2>(args, x, row, panel, half);
    if (row < last) pairs_block<1>(args, x, row, panel, half);
  }
}

// Rows [first, last) by a panel.
inline void multiply_panel(const ContractInt4Args& args, const Int4Rows& x, i64 first, i64 last, i64 panel) {
#if defined(__AVX512F__)
  if (args.unit != Int8Unit::pairs) return vnni_panel(args, x, first, last, panel);
#endif
  pairs_panel(args, x, first, last, panel);
}

}  // namespace

KernelReport contract_int4(const ContractInt4Args& args) {
  const Int4Rows x(args);
  if (args.n > 0 && args.rows > 0) {
    parallel_blocks(args.threads, args.rows, rows_per_part(args.k * 4), [&](i64 begin, i64 end) {
      for (i64 row = begin; row < end; ++row) quantize_groups(args, x, row);
    });
    const i64 panels = args.n / kPanel, panel_bytes = x.groups * (kCodes + 2 * kScales);
    // As many rows at a time as stay in the second cache while panels pass by.
    const i64 together = greater(8, kNear / greater(1, args.k) / 8 * 8);
    for (i64 first = 0; first < args.rows; first += together) {
      const i64 last = lesser(args.rows, first + together);
      parallel_blocks(args.threads, panels, rows_per_part(panel_bytes), [&](i64 begin, i64 end) {
        for (i64 panel = begin; panel < end; ++panel) multiply_panel(args, x, first, last, panel);
      });
    }
  }
  const i64 results = args.rows * args.n, groups = args.rows * x.groups;
  return {results * (2 * args.k + 5 * x.groups + 1) + 2 * args.rows * args.k + 3 * groups,
          0,
          0,
          0,
          args.rows * args.k * 4 + args.n * x.groups * 20,
          results * 4};
}

}  // namespace systole::cpu::SYSTOLE_ISA
