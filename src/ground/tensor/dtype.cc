#include "ground/tensor/dtype.h"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>

namespace systole {
namespace {

// A float format: `mantissa` bits after `exponent` bits; `finite`: no infinity (OCP FN).
struct Format {
  int exponent;
  int mantissa;
  bool finite;
  double largest;
};

constexpr Format kF16{5, 10, false, 65504.0}, kE4m3{4, 3, true, 448.0}, kE5m2{5, 2, false, 57344.0};

int bias_of(const Format& f) { return (1 << (f.exponent - 1)) - 1; }

double decode(const Format& f, std::uint32_t bits) {
  const std::uint32_t exponent_mask = (1U << f.exponent) - 1, mantissa_mask = (1U << f.mantissa) - 1;
  const std::uint32_t exponent = (bits >> f.mantissa) & exponent_mask, mantissa = bits & mantissa_mask;
  const double sign = (bits >> (f.exponent + f.mantissa)) & 1U ? -1.0 : 1.0;
  if (exponent == exponent_mask && (!f.finite || mantissa == mantissa_mask)) {
    if (!f.finite && mantissa == 0) return sign * std::numeric_limits<double>::infinity();
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias_of(f) - f.mantissa);
  return sign * std::ldexp(mantissa | (1U << f.mantissa), static_cast<int>(exponent) - bias_of(f) - f.mantissa);
}

std::uint32_t encode(const Format& f, double value) {
  const std::uint32_t exponent_mask = (1U << f.exponent) - 1, mantissa_mask = (1U << f.mantissa) - 1;
  const std::uint32_t sign = (std::signbit(value) ? 1U : 0U) << (f.exponent + f.mantissa);
  const std::uint32_t nan = sign | (exponent_mask << f.mantissa) | (f.finite ? mantissa_mask : 1U << (f.mantissa - 1));
  const std::uint32_t infinity = f.finite ? nan : sign | (exponent_mask << f.mantissa);
  if (std::isnan(value)) return nan;
  if (std::isinf(value)) return infinity;
  const double size = std::abs(value);
  if (size == 0) return sign;
  int exponent = 0;
  std::frexp(size, &exponent);
  const int unit = std::max(exponent - 1, 1 - bias_of(f)) - f.mantissa;  // exponent of the unit in the last place
  const double steps = std::nearbyint(std::ldexp(size, -unit));          // ties to even: the default rounding mode
  const double result = std::ldexp(steps, unit);
  if (result > f.largest) return infinity;
  auto count = static_cast<std::uint32_t>(steps);
  if (count <= mantissa_mask) return sign | count;  // subnormal
  int stored = unit + f.mantissa + bias_of(f);
  if (count > 2 * mantissa_mask + 1) {
    count >>= 1;
    ++stored;
  }
  return sign | (static_cast<std::uint32_t>(stored) << f.mantissa) | (count & mantissa_mask);
}

template <typename T>
T get(const std::byte* data, std::int64_t index) {
  T value;
  std::memcpy(&value, data + index * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return value;
}

template <typename T>
void put(std::byte* data, std::int64_t index, T value) {
  std::memcpy(data + index * static_cast<std::int64_t>(sizeof(T)), &value, sizeof(T));
}

template <typename T>
T saturated(double value) {
  if (std::isnan(value)) return 0;
  if (value <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  if (value >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  return static_cast<T>(value);
}

struct Entry {
  const char* name;
  int size;
  double epsilon;
};

constexpr std::array<Entry, kNumDTypes> kTable{{{"f64", 8, 0x1p-52},
                                                {"f32", 4, 0x1p-23},
                                                {"bf16", 2, 0x1p-7},
                                                {"f16", 2, 0x1p-10},
                                                {"f8e4m3", 1, 0x1p-3},
                                                {"f8e5m2", 1, 0x1p-2},
                                                {"i8", 1, 0},
                                                {"i32", 4, 0},
                                                {"i64", 8, 0},
                                                {"u8", 1, 0},
                                                {"u32", 4, 0},
                                                {"u64", 8, 0},
                                                {"bool", 1, 0}}};

const Entry& entry(DType dtype) { return kTable[static_cast<std::size_t>(dtype)]; }

}  // namespace

std::int64_t size_of(DType dtype) { return entry(dtype).size; }
const char* name_of(DType dtype) { return entry(dtype).name; }
bool is_float(DType dtype) { return entry(dtype).epsilon > 0; }
bool is_integer(DType dtype) { return !is_float(dtype) && dtype != DType::boolean; }
double epsilon_of(DType dtype) { return entry(dtype).epsilon; }

std::optional<DType> dtype_named(std::string_view name) {
  for (int i = 0; i < kNumDTypes; ++i) {
    if (name == kTable[static_cast<std::size_t>(i)].name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

double load(DType dtype, const std::byte* data, std::int64_t index) {
  switch (dtype) {
    case DType::f64: return get<double>(data, index);
    case DType::f32: return get<float>(data, index);
    case DType::bf16: return from_bf16(get<std::uint16_t>(data, index));
    case DType::f16: return decode(kF16, get<std::uint16_t>(data, index));
    case DType::f8e4m3: return decode(kE4m3, get<std::uint8_t>(data, index));
    case DType::f8e5m2: return decode(kE5m2, get<std::uint8_t>(data, index));
    case DType::i8: return get<std::int8_t>(data, index);
    case DType::i32: return get<std::int32_t>(data, index);
    case DType::i64: return static_cast<double>(get<std::int64_t>(data, index));
    case DType::u8: return get<std::uint8_t>(data, index);
    case DType::u32: return get<std::uint32_t>(data, index);
    case DType::u64: return static_cast<double>(get<std::uint64_t>(data, index));
    case DType::boolean: return get<std::uint8_t>(data, index) != 0 ? 1.0 : 0.0;
  }
  return 0;
}

void store(DType dtype, std::byte* data, std::int64_t index, double value) {
  switch (dtype) {
    case DType::f64: return put(data, index, value);
    case DType::f32: return put(data, index, static_cast<float>(value));
    case DType::bf16: {
      // A conversion through f32 could round twice; rounding to odd first keeps the second rounding exact.
      auto narrow = static_cast<float>(value);
      if (static_cast<double>(narrow) != value && std::isfinite(narrow)) {
        std::uint32_t bits;
        std::memcpy(&bits, &narrow, sizeof bits);
        const bool away = std::abs(static_cast<double>(narrow)) > std::abs(value);
        if (away) --bits;  // toward zero
        bits |= 1U;
        std::memcpy(&narrow, &bits, sizeof bits);
      }
      return put(data, index, to_bf16(narrow));
    }
    case DType::f16: return put(data, index, static_cast<std::uint16_t>(encode(kF16, value)));
    case DType::f8e4m3: return put(data, index, static_cast<std::uint8_t>(encode(kE4m3, value)));
    case DType::f8e5m2: return put(data, index, static_cast<std::uint8_t>(encode(kE5m2, value)));
    case DType::i8: return put(data, index, saturated<std::int8_t>(value));
    case DType::i32: return put(data, index, saturated<std::int32_t>(value));
    case DType::i64: return put(data, index, saturated<std::int64_t>(value));
    case DType::u8: return put(data, index, saturated<std::uint8_t>(value));
    case DType::u32: return put(data, index, saturated<std::uint32_t>(value));
    case DType::u64: return put(data, index, saturated<std::uint64_t>(value));
    case DType::boolean: return put(data, index, static_cast<std::uint8_t>(value != 0));
  }
}

double rounded(DType dtype, double value) {
  std::byte bytes[8];
  store(dtype, bytes, 0, value);
  return load(dtype, bytes, 0);
}

}  // namespace systole
