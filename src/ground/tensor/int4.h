#pragma once
// Numbers of four bits in groups of 32 with a scale d and a minimum m, both f16: x ≈ d q + m, with q in [0, 15].
// A matrix [rows, columns] of them lies in panels of 16 rows, so that a vector register holds 16 rows' numbers:
//
//   codes   u8[rows / 16, columns / 32, 256]   byte 64 v + 4 c + b: of row c of the panel, element 4 v + b of the group
//                                              in the low four bits, element 16 + 4 v + b in the high ones
//   scales  f16[rows / 16, columns / 32, 32]   the 16 rows' d, then their m
//
// That is 20 bytes for 32 numbers, as in GGUF's Q4_1, whose codes, d and m these are. GGUF's Q4_0, (q - 8) d, is the same
// with m = -8 d, which f16 holds exactly.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "ground/tensor/dtype.h"

namespace systole {

// As the type of a model's parameters: its matrices in such groups. Tensors of them are u8, two numbers each.
constexpr DType kInt4 = DType::u8;

// Whether parameters of this type are matrices in int8 or int4 beside others in f32.
constexpr bool is_packed_type(DType parameter) { return parameter == DType::i8 || parameter == kInt4; }
// "i4" of kInt4, "i8", "f32".
const char* name_of_parameter(DType parameter);
// "int4", "int8"; REQUIRES: is_packed_type.
constexpr const char* packed_name(DType parameter) { return parameter == kInt4 ? "int4" : "int8"; }

// The inverse of packed_name; f32 of "stored", which the model's own type replaces.
constexpr DType packed_type(std::string_view name) {
  return name == "int8" ? DType::i8 : name == "int4" ? kInt4 : DType::f32;
}

// Bits of f16.
std::uint16_t to_half(float value);
float from_half(std::uint16_t bits);
constexpr bool is_finite_half(std::uint16_t bits) { return (bits & 0x7c00U) != 0x7c00U; }

constexpr std::int64_t kInt4Group = 32, kInt4Panel = 16;
constexpr std::int64_t kInt4PanelBytes = 256, kInt4PanelScales = 32;  // of a group of a panel

// A group of one row, as a block of Q4_1: byte i has element i in its low, element 16 + i in its high four bits.
struct Int4Block {
  std::uint16_t scale = 0, minimum = 0;  // bits of f16
  std::array<std::uint8_t, 16> codes{};
};

// The group that is closest to x in squares, of some scales and minima tried; each number is the code whose value is
// nearest. Values that are not finite, or beyond f16, give a scale or minimum that is not.
Int4Block quantize_group(std::span<const float, kInt4Group> x);

// Element i: one multiplication and one addition in f32.
float value_of(const Int4Block& block, std::size_t i);

// Puts the group of a row into a matrix, and takes it out. `columns`: of the matrix.
void put_block(const Int4Block& block, std::int64_t columns, std::int64_t row, std::int64_t group,
               std::span<std::uint8_t> codes, std::span<std::uint16_t> scales);
Int4Block block_at(std::int64_t columns, std::int64_t row, std::int64_t group, std::span<const std::uint8_t> codes,
                   std::span<const std::uint16_t> scales);

}  // namespace systole
