// dropout and stochastic_round: the words of random.h, 64 places at a time. Roofline: Philox, 10 rounds of two
// multiplications per four elements.

#include "execute/backends/cpu/kernels/random.h"

#include <immintrin.h>

#include "execute/backends/cpu/kernels/entry.h"
#include "execute/backends/cpu/kernels/row.h"

namespace systole::cpu::SYSTOLE_ISA {
namespace {

constexpr i64 kQuads = 16, kWords = 4 * kQuads;

// Counters in the lower halves of 64-bit lanes; the upper halves are ignored. The product of lower halves is one
// instruction, which the compilers' vector extensions do not expose.
typedef std::uint64_t W __attribute__((vector_size(kLanes * 4)));
constexpr i64 kWide = kLanes / 2, kGroups = kQuads / kWide;

inline W product_of_lower(W a, W b) {
#if defined(__AVX512F__)
  // All lanes: the plain form triggers a warning of gcc 12 in its own header (gcc bug 105593).
  return reinterpret_cast<W>(_mm512_maskz_mul_epu32(0xff, reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
#else
  return reinterpret_cast<W>(_mm256_mul_epu32(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
#endif
}

// words[4 q + w] = word w of quad first + q.
inline void philox_words(std::uint64_t seed, std::uint64_t first, std::uint32_t site, std::uint32_t step,
                         std::uint32_t* words) {
  for (i64 group = 0; group < kGroups; ++group) {
    W quad;
    for (i64 lane = 0; lane < kWide; ++lane) quad[lane] = first + static_cast<std::uint64_t>(group * kWide + lane);
    W c0 = quad, c1 = quad >> 32, c2 = W{} + site, c3 = W{} + step;
    std::uint32_t k0 = static_cast<std::uint32_t>(seed), k1 = static_cast<std::uint32_t>(seed >> 32);
    for (int round = 0; round < 10; ++round) {
      const W p0 = product_of_lower(W{} + 0xD2511F53u, c0), p1 = product_of_lower(W{} + 0xCD9E8D57u, c2);
      c0 = (p1 >> 32) ^ c1 ^ (W{} + k0);
      c1 = p1;
      c2 = (p0 >> 32) ^ c3 ^ (W{} + k1);
      c3 = p0;
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    const W low = (c0 & 0xffffffffu) | (c1 << 32), high = (c2 & 0xffffffffu) | (c3 << 32);
    for (i64 lane = 0; lane < kWide; ++lane) {
      const std::uint64_t pair[2] = {low[lane], high[lane]};
      __builtin_memcpy(words + 4 * (group * kWide + lane), pair, 16);
    }
  }
}

inline std::uint64_t first_place(const RandomPlace& place) {
  return static_cast<std::uint64_t>(*place.row) * static_cast<std::uint64_t>(place.elements_per_row);
}

// Calls fn(i, n, words) for elements [begin, end), n of them from i at a time; element i has place first + i.
template <typename Fn>
inline void with_words(const RandomPlace& place, std::uint64_t first, i64 begin, i64 end, const Fn& fn) {
  const auto site = static_cast<std::uint32_t>(*place.site), step = static_cast<std::uint32_t>(*place.step);
  std::uint32_t words[kWords + kLanes] = {};
  for (i64 i = begin; i < end;) {
    const std::uint64_t at = first + static_cast<std::uint64_t>(i), quad = at / 4;
    philox_words(static_cast<std::uint64_t>(*place.seed), quad, site, step, words);
    const i64 skip = static_cast<i64>(at - quad * 4), n = lesser(kWords - skip, end - i);
    fn(i, n, words + skip);
    i += n;
  }
}

// Calls fn(first, begin, end) for runs of [begin, end) within one row, whose element i has place first + i.
template <typename Fn>
inline void each_run(const TokenPlaces& t, i64 row, i64 begin, i64 end, const Fn& fn) {
  for (i64 i = begin; i < end;) {
    const i64 token = i / t.elements_per_token, b = token / t.tokens, at = token % t.tokens;
    i64 last = at;  // last of the tokens with consecutive places
    while (last + 1 < t.tokens && (token + last + 1 - at) * t.elements_per_token < end &&
           t.places[last + 1] == t.places[last] + 1)
      ++last;
    const i64 stop = lesser(end, (token + last + 1 - at) * t.elements_per_token);
    const i64 place = ((row + b) * t.length + t.places[at]) * t.elements_per_token;
    fn(static_cast<std::uint64_t>(place - token * t.elements_per_token), i, stop);
    i = stop;
  }
}

inline U load_words(const std::uint32_t* words) {
  U v;
  __builtin_memcpy(&v, words, sizeof v);
  return v;
}

inline std::uint16_t round_word(std::uint32_t bits, std::uint32_t word) {
  const std::uint32_t sign = bits & 0x80000000u, magnitude = bits & 0x7fffffffu;
  if (magnitude >= 0x7f800000u) {  // infinities and NaN are kept
    return static_cast<std::uint16_t>((bits >> 16) | (magnitude > 0x7f800000u ? 0x40u : 0u));
  }
  return static_cast<std::uint16_t>((sign | (magnitude + (word >> 16))) >> 16);
}

constexpr i64 kBlock = 4096;
constexpr i64 kKeyBytes = 32;  // seed, step, site, row

}  // namespace

KernelReport dropout(const DropoutArgs& args) {
  // u ≥ rate for the multiples u of 2^-24: exactly the words whose upper 24 bits are at least this.
  const auto threshold = static_cast<std::int32_t>(__builtin_ceil(args.rate * 16777216.0));
  const float factor = static_cast<float>(1 / (1 - args.rate));
  visit_float(args.elem, [&](auto* type) {
    using T = typename Pointee<decltype(type)>::type;
    const T* x = static_cast<const T*>(args.x);
    T* y = static_cast<T*>(args.y);
    parallel_blocks(args.threads, args.n, kBlock, [&](i64 begin, i64 end) {
      const auto run = [&](std::uint64_t first, i64 from, i64 to) {
        with_words(args.place, first, from, to, [&](i64 i, i64 n, const std::uint32_t* words) {
          for (i64 k = 0; k < n; k += kLanes) {
            const I kept = reinterpret_cast<I>(load_words(words + k) >> 8) >= I{} + threshold;
            put(y + i, k, n, blend(kept, get(x + i, k, n) * factor, F{}));
          }
        });
      };
      if (args.tokens.places == nullptr)
        run(first_place(args.place), begin, end);
      else
        each_run(args.tokens, *args.place.row, begin, end, run);
    });
  });
  const i64 bytes = args.n * size_of(args.elem), places = args.tokens.places == nullptr ? 0 : 4 * args.tokens.tokens;
  return {args.n, 0, 0, 0, bytes + kKeyBytes + places, bytes};
}

KernelReport stochastic_round(const StochasticRoundArgs& args) {
  visit_float(args.elem, [&](auto* type) {
    using T = typename Pointee<decltype(type)>::type;
    const T* x = static_cast<const T*>(args.x);
    Bf16* y = static_cast<Bf16*>(args.y);
    parallel_blocks(args.threads, args.n, kBlock, [&](i64 begin, i64 end) {
      with_words(args.place, first_place(args.place), begin, end, [&](i64 i, i64 n, const std::uint32_t* words) {
        for (i64 k = 0; k < n; ++k) {
          const float value = to_f32(x[i + k]);
          std::uint32_t bits;
          __builtin_memcpy(&bits, &value, sizeof bits);
          y[i + k].bits = round_word(bits, words[k]);
        }
      });
    });
  });
  return {0, 0, 0, 0, args.n * size_of(args.elem) + kKeyBytes, args.n * 2};
}

}  // namespace systole::cpu::SYSTOLE_ISA
