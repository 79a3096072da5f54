#pragma once
// The element types of GGUF files. Quantised ones are blocks along a row: integers of a few bits with a scale, and for
// some a minimum, which a block of 256 ("K") quantises too. Layouts: github.com/ggml-org/ggml, src/ggml-common.h; what
// they stand for: dequantize_row_* in src/ggml-quants.c, whose floats these equal bit for bit.

#include <cstdint>
#include <span>
#include <string>

#include "ground/tensor/int4.h"

namespace systole {

struct GgufBlock {
  std::uint32_t id = 0;  // ggml_type
  const char* name = "";
  std::int64_t elements = 1, bytes = 0;
  DType dtype = DType::f32;  // as which the elements are read: their own type, or f32 of a quantised one
  // Some blocks; null: they are read as they are.
  void (*widen)(const std::byte* blocks, float* into, std::size_t count) = nullptr;
};

// Null if the type is not read here.
const GgufBlock* gguf_block(std::uint32_t id);
// "Q2_K"; of an unknown type "77".
std::string gguf_type_name(std::uint32_t id);
// "F32, F16, ...": those that are read, for messages.
std::string gguf_types_read();

// REQUIRES: `blocks` are whole, and `into` has as many elements as they.
void widen(const GgufBlock& block, std::span<const std::byte> blocks, std::span<float> into);

// Whether blocks of the type are groups of int4, of which as_int4 makes them.
bool is_int4(const GgufBlock& block);
// The blocks as groups with the same numbers, but for the sign of a zero. False: a minimum, -8 times the scale of a Q4_0,
// is beyond f16. REQUIRES: is_int4; `into` has as many groups as there are blocks.
bool as_int4(const GgufBlock& block, std::span<const std::byte> blocks, std::span<Int4Block> into);

}  // namespace systole
