// dropout and stochastic_round: the words of random.h, 64 places at a time. Roofline: Philox, 10 rounds of two
// multiplications for four elements.

#include "execute/backends/cpu/kernels/random.h"

#include "execute/backends/cpu/kernels/entry.h"
#include "execute/backends/cpu/kernels/row.h"

namespace systole::cpu::SYSTOLE_ISA {
namespace {

constexpr i64 kQuads = 16, kWords = 4 * kQuads;

// words[4 q + w] = word w of quad first + q.
void philox_words(std::uint64_t seed, std::uint64_t first, std::uint32_t site, std::uint32_t step, std::uint32_t* words) {
  std::uint32_t c0[kQuads], c1[kQuads], c2[kQuads], c3[kQuads];
  for (i64 q = 0; q < kQuads; ++q) {
    const std::uint64_t quad = first + static_cast<std::uint64_t>(q);
    c0[q] = static_cast<std::uint32_t>(quad);
    c1[q] = static_cast<std::uint32_t>(quad >> 32);
    c2[q] = site;
    c3[q] = step;
  }
  std::uint32_t k0 = static_cast<std::uint32_t>(seed), k1 = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    for (i64 q = 0; q < kQuads; ++q) {
      const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * c0[q], p1 = std::uint64_t{0xCD9E8D57u} * c2[q];
      c0[q] = static_cast<std::uint32_t>(p1 >> 32) ^ c1[q] ^ k0;
      c1[q] = static_cast<std::uint32_t>(p1);
      c2[q] = static_cast<std::uint32_t>(p0 >> 32) ^ c3[q] ^ k1;
      c3[q] = static_cast<std::uint32_t>(p0);
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  for (i64 q = 0; q < kQuads; ++q) {
    words[4 * q] = c0[q];
    words[4 * q + 1] = c1[q];
    words[4 * q + 2] = c2[q];
    words[4 * q + 3] = c3[q];
  }
}

// fn(i, word) for the elements [begin, end), in order.
template <typename Fn>
inline void with_words(const RandomPlace& place, i64 begin, i64 end, const Fn& fn) {
  const std::uint64_t first = static_cast<std::uint64_t>(*place.row) * static_cast<std::uint64_t>(place.elements_per_row);
  const auto site = static_cast<std::uint32_t>(*place.site), step = static_cast<std::uint32_t>(*place.step);
  std::uint32_t words[kWords];
  for (i64 i = begin; i < end;) {
    const std::uint64_t at = first + static_cast<std::uint64_t>(i), quad = at / 4;
    philox_words(static_cast<std::uint64_t>(*place.seed), quad, site, step, words);
    const i64 skip = static_cast<i64>(at - quad * 4), count = lesser(kWords - skip, end - i);
    for (i64 k = 0; k < count; ++k) fn(i + k, words[skip + k]);
    i += count;
  }
}

inline std::uint16_t round_word(std::uint32_t bits, std::uint32_t word) {
  const std::uint32_t sign = bits & 0x80000000u, magnitude = bits & 0x7fffffffu;
  if (magnitude >= 0x7f800000u) {  // infinities stay, NaN stays one
    return static_cast<std::uint16_t>((bits >> 16) | (magnitude > 0x7f800000u ? 0x40u : 0u));
  }
  return static_cast<std::uint16_t>((sign | (magnitude + (word >> 16))) >> 16);
}

constexpr i64 kBlock = 4096;
constexpr i64 kKeyBytes = 32;  // seed, step, site, row

}  // namespace

KernelReport dropout(const DropoutArgs& args) {
  // u ≥ rate for the multiples u of 2^-24: exactly the words whose upper 24 bits are at least this.
  const auto threshold = static_cast<std::uint32_t>(__builtin_ceil(args.rate * 16777216.0));
  const float factor = static_cast<float>(1 / (1 - args.rate));
  visit_float(args.elem, [&](auto* type) {
    using T = typename Pointee<decltype(type)>::type;
    const T* x = static_cast<const T*>(args.x);
    T* y = static_cast<T*>(args.y);
    parallel_blocks(args.threads, args.n, kBlock, [&](i64 begin, i64 end) {
      with_words(args.place, begin, end, [&](i64 i, std::uint32_t word) {
        const float scaled = to_f32(x[i]) * factor;
        set_f32(y + i, (word >> 8) >= threshold ? scaled : 0.0f);
      });
    });
  });
  const i64 bytes = args.n * size_of(args.elem);
  return {args.n, 0, 0, 0, bytes + kKeyBytes, bytes};
}

KernelReport stochastic_round(const StochasticRoundArgs& args) {
  visit_float(args.elem, [&](auto* type) {
    using T = typename Pointee<decltype(type)>::type;
    const T* x = static_cast<const T*>(args.x);
    Bf16* y = static_cast<Bf16*>(args.y);
    parallel_blocks(args.threads, args.n, kBlock, [&](i64 begin, i64 end) {
      with_words(args.place, begin, end, [&](i64 i, std::uint32_t word) {
        const float value = to_f32(x[i]);
        std::uint32_t bits;
        __builtin_memcpy(&bits, &value, sizeof bits);
        y[i].bits = round_word(bits, word);
      });
    });
  });
  return {0, 0, 0, 0, args.n * size_of(args.elem) + kKeyBytes, args.n * 2};
}

}  // namespace systole::cpu::SYSTOLE_ISA
