// Constants in full precision: a value is written so that MLIR reads back exactly the same value.

#include <cmath>

#include "describe/stablehlo/builder.h"
#include "ground/base/error.h"

namespace systole::stablehlo {
namespace {

// MLIR accepts infinities and NaN only as bits.
std::string bits_text(DType dtype, double value) {
  std::byte bytes[8] = {};
  store(dtype, bytes, 0, value);
  std::string text = "0x";
  for (std::int64_t i = size_of(dtype); i-- > 0;)
    text += fmt::format("{:02X}", std::to_integer<unsigned>(bytes[static_cast<std::size_t>(i)]));
  return text;
}

std::string float_text(DType dtype, double value) {
  const double exact = rounded(dtype, value);
  if (!std::isfinite(exact)) return bits_text(dtype, value);
  std::string text = fmt::format("{}", exact);  // the shortest text that reads back; MLIR requires a point
  const std::size_t e = text.find('e');
  if (text.find('.') == std::string::npos) text.insert(e == std::string::npos ? text.size() : e, ".0");
  return text;
}

std::string element_text(DType dtype, double value) {
  if (dtype == DType::boolean) return value != 0 ? "true" : "false";
  if (is_float(dtype)) return float_text(dtype, value);
  CHECK(rounded(dtype, value) == value, "{} as an {}", value, name_of(dtype));
  return dtype == DType::u64 ? std::to_string(static_cast<std::uint64_t>(value))
                             : std::to_string(static_cast<std::int64_t>(value));
}

// The elements of `shape` from `next` on, in nested brackets.
std::string nested(const Type& type, std::span<const double> elements, std::size_t dim, std::size_t& next) {
  if (dim == type.shape.size()) return element_text(type.dtype, elements[next++]);
  std::string text = "[";
  for (std::int64_t i = 0; i < type.shape[dim]; ++i) {
    if (i > 0) text += ", ";
    text += nested(type, elements, dim + 1, next);
  }
  return text + "]";
}

std::string dense(const std::string& elements, const Type& type) {
  return fmt::format("value = dense<{}> : {}", type.num_elements() == 0 ? "" : elements, type_text(type));
}

}  // namespace

Ssa Builder::constant(const Type& type, double value) {
  return line("constant", {}, dense(element_text(type.dtype, value), type), type);
}

Ssa Builder::integer(const Type& type, std::uint64_t bits) {
  std::string text;
  switch (type.dtype) {
    case DType::i8: text = std::to_string(static_cast<std::int8_t>(bits)); break;
    case DType::i32: text = std::to_string(static_cast<std::int32_t>(bits)); break;
    case DType::i64: text = std::to_string(static_cast<std::int64_t>(bits)); break;
    case DType::u8: text = std::to_string(static_cast<std::uint8_t>(bits)); break;
    case DType::u32: text = std::to_string(static_cast<std::uint32_t>(bits)); break;
    case DType::u64: text = std::to_string(bits); break;
    default: CHECK(false, "{} holds no integers", name_of(type.dtype)); break;
  }
  return line("constant", {}, dense(text, type), type);
}

Ssa Builder::table(const Type& type, std::span<const double> elements) {
  CHECK(static_cast<std::int64_t>(elements.size()) == type.num_elements(), "{} elements for {}", elements.size(),
        to_string(type));
  std::size_t next = 0;
  return line("constant", {}, dense(type.num_elements() == 0 ? "" : nested(type, elements, 0, next), type), type);
}

Ssa Builder::iota(const Type& type, int dim) {
  return line("iota", {}, fmt::format("iota_dimension = {} : i64", dim), type);
}

}  // namespace systole::stablehlo
