#pragma once
// Element types. Every type has a size and a name. Conversions go through double, which is exact for all values except
// the largest 64-bit integers. Types that no backend runs (f8…) exist for planning.
//
// bf16: 1-8-7 bits, f32's range. f16: IEEE 754 half. f8e4m3 (OCP "FN": no infinity, NaN = S.1111.111, largest 448)
// and f8e5m2 (IEEE-like, largest 57344): OCP 8-bit Floating Point Specification 1.0, 2023.
// Rounding is to nearest, ties to even; overflow gives infinity (f8e4m3: NaN).

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "ground/base/units.h"

namespace systole {

enum class DType : std::uint8_t { f64, f32, bf16, f16, f8e4m3, f8e5m2, i8, i32, i64, u8, u32, u64, boolean };

constexpr int kNumDTypes = 13;

std::int64_t size_of(DType dtype);  // bytes per element
const char* name_of(DType dtype);   // "bf16", "bool"
std::optional<DType> dtype_named(std::string_view name);
bool is_float(DType dtype);
bool is_integer(DType dtype);    // false for bool too
double epsilon_of(DType dtype);  // distance from 1 to the next value; REQUIRES: is_float

// The element at `index` of a packed array, as double; rounds i64 and u64 beyond 2^53.
double load(DType dtype, const std::byte* data, std::int64_t index);
// Rounds to the type and stores. Integers truncate toward zero and saturate; NaN becomes 0. Bool: value != 0.
void store(DType dtype, std::byte* data, std::int64_t index, double value);
// `value` rounded to the type.
double rounded(DType dtype, double value);

// bf16 to f32 and back: inline, because inner loops use them.
inline float from_bf16(std::uint16_t bits) {
  const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16;
  float value;
  __builtin_memcpy(&value, &wide, sizeof value);
  return value;
}
inline std::uint16_t to_bf16(float value) {
  std::uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<std::uint16_t>((bits >> 16) | 0x40U);  // NaN stays NaN
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

}  // namespace systole
