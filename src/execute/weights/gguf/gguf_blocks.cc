#include "execute/weights/gguf/gguf_blocks.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstring>

#include "ground/tensor/int4.h"

namespace systole {
namespace {

#define SYSTOLE_INLINE [[gnu::always_inline]] inline

// As from_half, without a branch for usual numbers. A subnormal's is the difference of two numbers that are not.
SYSTOLE_INLINE float half_value(std::uint16_t bits) {
  const std::uint32_t exponent = bits & 0x7c00U, rest = (bits & 0x7fffU) << 13, sign = (bits & 0x8000U) << 16;
  if (exponent == 0x7c00U) return from_half(bits);
  const float size =
      exponent != 0 ? std::bit_cast<float>(rest + (112U << 23)) : std::bit_cast<float>(rest + (113U << 23)) - 0x1p-14F;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(size) | sign);
}

SYSTOLE_INLINE std::uint16_t half_bits(const std::byte* at) {
  std::uint16_t bits;
  std::memcpy(&bits, at, sizeof bits);
  return bits;
}

// A block's bytes, as the numbers they are.
struct Fields {
  const std::byte* at;
  float half(std::size_t byte) const { return half_value(half_bits(at + byte)); }
  std::uint8_t u8(std::size_t byte) const { return std::to_integer<std::uint8_t>(at[byte]); }
  std::int8_t i8(std::size_t byte) const { return static_cast<std::int8_t>(u8(byte)); }
  std::uint32_t u32(std::size_t byte) const {
    std::uint32_t value;
    std::memcpy(&value, at + byte, sizeof value);
    return value;
  }
  int low(std::size_t byte) const { return u8(byte) & 0xF; }
  int high(std::size_t byte) const { return u8(byte) >> 4; }
};

constexpr std::size_t kBlock = 32, kHalf = 16, kSuper = 256;

// f16 scale, 16 bytes: elements i in the low, i + 16 in the high four bits.
SYSTOLE_INLINE void q4_0(const std::byte* block, float* into) {
  const Fields f{block};
  const float d = f.half(0);
  for (std::size_t i = 0; i < kHalf; ++i) {
    into[i] = static_cast<float>(f.low(2 + i) - 8) * d;
    into[i + kHalf] = static_cast<float>(f.high(2 + i) - 8) * d;
  }
}

// f16 scale, f16 minimum, 16 bytes.
SYSTOLE_INLINE void q4_1(const std::byte* block, float* into) {
  const Fields f{block};
  const float d = f.half(0), m = f.half(2);
  for (std::size_t i = 0; i < kHalf; ++i) {
    into[i] = static_cast<float>(f.low(4 + i)) * d + m;
    into[i + kHalf] = static_cast<float>(f.high(4 + i)) * d + m;
  }
}

// The fifth bits are a u32: bit i is element i's.
SYSTOLE_INLINE int fifth(std::uint32_t bits, std::size_t i) { return static_cast<int>(bits >> i & 1U) << 4; }

// f16 scale, fifth bits, 16 bytes.
SYSTOLE_INLINE void q5_0(const std::byte* block, float* into) {
  const Fields f{block};
  const float d = f.half(0);
  const std::uint32_t bits = f.u32(2);
  for (std::size_t i = 0; i < kHalf; ++i) {
    into[i] = static_cast<float>((f.low(6 + i) | fifth(bits, i)) - 16) * d;
    into[i + kHalf] = static_cast<float>((f.high(6 + i) | fifth(bits, i + kHalf)) - 16) * d;
  }
}

// f16 scale, f16 minimum, fifth bits, 16 bytes.
SYSTOLE_INLINE void q5_1(const std::byte* block, float* into) {
  const Fields f{block};
  const float d = f.half(0), m = f.half(2);
  const std::uint32_t bits = f.u32(4);
  for (std::size_t i = 0; i < kHalf; ++i) {
    into[i] = static_cast<float>(f.low(8 + i) | fifth(bits, i)) * d + m;
    into[i + kHalf] = static_cast<float>(f.high(8 + i) | fifth(bits, i + kHalf)) * d + m;
  }
}

// f16 scale, 32 signed bytes.
SYSTOLE_INLINE void q8_0(const std::byte* block, float* into) {
  const Fields f{block};
  const float d = f.half(0);
  for (std::size_t i = 0; i < kBlock; ++i) into[i] = static_cast<float>(f.i8(2 + i)) * d;
}

// Scale and minimum, of 6 bits each, of one of eight groups; 12 bytes from byte 4 of a K block on hold all.
struct Group {
  float scale, minimum;
};
SYSTOLE_INLINE Group group_of(const Fields& f, std::size_t group) {
  const std::size_t at = 4 + group;
  if (group < 4) return {static_cast<float>(f.u8(at) & 63), static_cast<float>(f.u8(at + 4) & 63)};
  return {static_cast<float>(f.low(at + 4) | f.u8(at - 4) >> 6 << 4),
          static_cast<float>(f.high(at + 4) | f.u8(at) >> 6 << 4)};
}

// f16 scale of scales, f16 scale of minima, 12 bytes of groups, 128 bytes: 32 of them hold two groups of 32.
SYSTOLE_INLINE void q4_k(const std::byte* block, float* into) {
  const Fields f{block};
  const float d = f.half(0), m = f.half(2);
  for (std::size_t group = 0; group < 8; ++group) {
    const Group g = group_of(f, group);
    const float scale = d * g.scale, minimum = m * g.minimum;
    const std::size_t from = 16 + group / 2 * kBlock;
    for (std::size_t i = 0; i < kBlock; ++i) {
      const int q = group % 2 == 0 ? f.low(from + i) : f.high(from + i);
      into[group * kBlock + i] = scale * static_cast<float>(q) - minimum;
    }
  }
}

// As q4_k, with 32 bytes of fifth bits before the 128: bit g of byte i is that of element i of group g.
SYSTOLE_INLINE void q5_k(const std::byte* block, float* into) {
  const Fields f{block};
  const float d = f.half(0), m = f.half(2);
  for (std::size_t group = 0; group < 8; ++group) {
    const Group g = group_of(f, group);
    const float scale = d * g.scale, minimum = m * g.minimum;
    const std::size_t from = 48 + group / 2 * kBlock;
    for (std::size_t i = 0; i < kBlock; ++i) {
      const int q = (group % 2 == 0 ? f.low(from + i) : f.high(from + i)) | fifth(f.u8(16 + i), group);
      into[group * kBlock + i] = scale * static_cast<float>(q) - minimum;
    }
  }
}

// 128 bytes of low four bits, 64 of high two, 16 signed scales of 16 elements each, f16 scale of scales. Each half of
// the block has 64, 32 and 8 of them, and its elements in four runs of 32.
SYSTOLE_INLINE void q6_k(const std::byte* block, float* into) {
  const Fields f{block};
  const float d = f.half(208);
  for (std::size_t half = 0; half < 2; ++half) {
    for (std::size_t run = 0; run < 4; ++run) {
      for (std::size_t i = 0; i < kBlock; ++i) {
        const std::size_t from = half * 64 + run % 2 * kBlock + i;
        const int low = run < 2 ? f.low(from) : f.high(from);
        const int high = f.u8(128 + half * kBlock + i) >> (2 * run) & 3;
        const float scale = d * static_cast<float>(f.i8(192 + half * 8 + run * 2 + i / 16));
        into[half * 128 + run * kBlock + i] = scale * static_cast<float>((low | high << 4) - 32);
      }
    }
  }
}

// Blocks of one type, compiled for each instruction set: the loops become vectors.
template <void (*one)(const std::byte*, float*), std::size_t elements, std::size_t bytes>
SYSTOLE_INLINE void each(const std::byte* blocks, float* into, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) one(blocks + i * bytes, into + i * elements);
}

#if defined(__x86_64__)
template <void (*one)(const std::byte*, float*), std::size_t elements, std::size_t bytes>
__attribute__((target("avx2"))) void each_avx2(const std::byte* blocks, float* into, std::size_t count) {
  each<one, elements, bytes>(blocks, into, count);
}
#endif

template <void (*one)(const std::byte*, float*), std::size_t elements, std::size_t bytes>
void each_block(const std::byte* blocks, float* into, std::size_t count) {
#if defined(__x86_64__)
  static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
  if (has_avx2) return each_avx2<one, elements, bytes>(blocks, into, count);
#endif
  each<one, elements, bytes>(blocks, into, count);
}

template <void (*one)(const std::byte*, float*), std::int64_t elements, std::int64_t bytes>
constexpr GgufBlock quantised(std::uint32_t id, const char* name) {
  return {id, name, elements, bytes, DType::f32, each_block<one, elements, bytes>};
}

constexpr std::array kRead = {GgufBlock{0, "F32", 1, 4, DType::f32, nullptr},
                              GgufBlock{1, "F16", 1, 2, DType::f16, nullptr},
                              GgufBlock{30, "BF16", 1, 2, DType::bf16, nullptr},
                              quantised<q4_0, kBlock, 18>(2, "Q4_0"),
                              quantised<q4_1, kBlock, 20>(3, "Q4_1"),
                              quantised<q5_0, kBlock, 22>(6, "Q5_0"),
                              quantised<q5_1, kBlock, 24>(7, "Q5_1"),
                              quantised<q8_0, kBlock, 34>(8, "Q8_0"),
                              quantised<q4_k, kSuper, 144>(12, "Q4_K"),
                              quantised<q5_k, kSuper, 176>(13, "Q5_K"),
                              quantised<q6_k, kSuper, 210>(14, "Q6_K")};

// Types that are not read, for messages (ggml.h, enum ggml_type).
struct TypeName {
  std::uint32_t id;
  const char* name;
};
constexpr std::array kOthers = {TypeName{9, "Q8_1"},     TypeName{10, "Q2_K"},    TypeName{11, "Q3_K"},
                                TypeName{15, "Q8_K"},    TypeName{16, "IQ2_XXS"}, TypeName{17, "IQ2_XS"},
                                TypeName{18, "IQ3_XXS"}, TypeName{19, "IQ1_S"},   TypeName{20, "IQ4_NL"},
                                TypeName{21, "IQ3_S"},   TypeName{22, "IQ2_S"},   TypeName{23, "IQ4_XS"},
                                TypeName{24, "I8"},      TypeName{25, "I16"},     TypeName{26, "I32"},
                                TypeName{27, "I64"},     TypeName{28, "F64"},     TypeName{29, "IQ1_M"},
                                TypeName{34, "TQ1_0"},   TypeName{35, "TQ2_0"},   TypeName{39, "MXFP4"}};

constexpr std::uint32_t kQ4_0 = 2, kQ4_1 = 3;

// Bits of -8 times an f16, which only adds to the exponent. False: it is beyond f16.
bool times_minus_eight(std::uint16_t& bits) {
  std::byte bytes[2];
  store(DType::f16, bytes, 0, -8 * load(DType::f16, reinterpret_cast<const std::byte*>(&bits), 0));
  const bool was_finite = is_finite_half(bits);
  bits = half_bits(bytes);
  return !was_finite || is_finite_half(bits);  // infinities are found with the scales
}

}  // namespace

bool is_int4(const GgufBlock& block) { return block.id == kQ4_0 || block.id == kQ4_1; }

bool as_int4(const GgufBlock& block, std::span<const std::byte> blocks, std::span<Int4Block> into) {
  const std::byte* at = blocks.data();
  for (Int4Block& group : into) {
    group.scale = group.minimum = half_bits(at);
    if (block.id == kQ4_1) group.minimum = half_bits(at + 2);
    if (block.id == kQ4_0 && !times_minus_eight(group.minimum)) return false;
    std::memcpy(group.codes.data(), at + (block.id == kQ4_1 ? 4 : 2), group.codes.size());
    at += block.bytes;
  }
  return true;
}

const GgufBlock* gguf_block(std::uint32_t id) {
  for (const GgufBlock& block : kRead) {
    if (block.id == id) return &block;
  }
  return nullptr;
}

std::string gguf_type_name(std::uint32_t id) {
  if (const GgufBlock* block = gguf_block(id)) return block->name;
  for (const TypeName& one : kOthers) {
    if (one.id == id) return one.name;
  }
  return fmt::format("{}", id);
}

std::string gguf_types_read() {
  std::string names;
  for (const GgufBlock& block : kRead) names += fmt::format("{}{}", names.empty() ? "" : ", ", block.name);
  return names;
}

void widen(const GgufBlock& block, std::span<const std::byte> blocks, std::span<float> into) {
  block.widen(blocks.data(), into.data(), into.size() / static_cast<std::size_t>(block.elements));
}

}  // namespace systole
