#include "execute/comm/sums.h"

#include <type_traits>

namespace systole {
namespace {

// Integers are added as unsigned, where wrapping is defined.
template <typename T>
using Adds = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>>::type;

template <typename T>
void add(std::byte* into, const std::byte* piece, std::int64_t elements) {
  T* const __restrict sums = reinterpret_cast<T*>(into);
  const T* const __restrict more = reinterpret_cast<const T*>(piece);
  for (std::int64_t i = 0; i < elements; ++i)
    sums[i] = static_cast<T>(static_cast<Adds<T>>(sums[i]) + static_cast<Adds<T>>(more[i]));
}

template <typename T>
T larger(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return b > a || b != b ? b : a;
  return b > a ? b : a;
}

template <typename T>
void maximum_of(std::byte* into, const std::byte* piece, std::int64_t elements) {
  T* const __restrict most = reinterpret_cast<T*>(into);
  const T* const __restrict more = reinterpret_cast<const T*>(piece);
  for (std::int64_t i = 0; i < elements; ++i) most[i] = larger(most[i], more[i]);
}

void maximum_of_bf16(std::byte* into, const std::byte* piece, std::int64_t elements) {
  auto* const __restrict most = reinterpret_cast<std::uint16_t*>(into);
  const auto* const __restrict more = reinterpret_cast<const std::uint16_t*>(piece);
  for (std::int64_t i = 0; i < elements; ++i) {
    const float a = from_bf16(most[i]), b = from_bf16(more[i]);
    most[i] = b > a || b != b ? more[i] : most[i];
  }
}

// For types that no fast backend computes with: element by element in double, which holds each value exactly.
template <DType kType>
void maximum_by_element(std::byte* into, const std::byte* piece, std::int64_t elements) {
  for (std::int64_t i = 0; i < elements; ++i)
    store(kType, into, i, larger(load(kType, into, i), load(kType, piece, i)));
}

void widen_bf16(float* into, const std::byte* from, std::int64_t elements) {
  const auto* const __restrict bits = reinterpret_cast<const std::uint16_t*>(from);
  for (std::int64_t i = 0; i < elements; ++i) into[i] = from_bf16(bits[i]);
}
void add_bf16(std::byte* into, const std::byte* piece, std::int64_t elements) {
  auto* const __restrict sums = reinterpret_cast<float*>(into);
  const auto* const __restrict bits = reinterpret_cast<const std::uint16_t*>(piece);
  for (std::int64_t i = 0; i < elements; ++i) sums[i] += from_bf16(bits[i]);
}
void round_bf16(std::byte* into, const float* from, std::int64_t elements) {
  auto* const __restrict bits = reinterpret_cast<std::uint16_t*>(into);
  for (std::int64_t i = 0; i < elements; ++i) bits[i] = to_bf16(from[i]);
}

void widen_f16(float* into, const std::byte* from, std::int64_t elements) {
  for (std::int64_t i = 0; i < elements; ++i) into[i] = static_cast<float>(load(DType::f16, from, i));
}
void add_f16(std::byte* into, const std::byte* piece, std::int64_t elements) {
  auto* const sums = reinterpret_cast<float*>(into);
  for (std::int64_t i = 0; i < elements; ++i) sums[i] += static_cast<float>(load(DType::f16, piece, i));
}
void round_f16(std::byte* into, const float* from, std::int64_t elements) {
  for (std::int64_t i = 0; i < elements; ++i) store(DType::f16, into, i, static_cast<double>(from[i]));
}

}  // namespace

CombinePiece combine_of(DType dtype, bool maximum) {
  switch (dtype) {
    case DType::f64: return maximum ? maximum_of<double> : add<double>;
    case DType::f32: return maximum ? maximum_of<float> : add<float>;
    case DType::bf16: return maximum ? maximum_of_bf16 : nullptr;
    case DType::f16: return maximum ? maximum_by_element<DType::f16> : nullptr;
    case DType::f8e4m3: return maximum ? maximum_by_element<DType::f8e4m3> : nullptr;
    case DType::f8e5m2: return maximum ? maximum_by_element<DType::f8e5m2> : nullptr;
    case DType::i8: return maximum ? maximum_of<std::int8_t> : add<std::int8_t>;
    case DType::i32: return maximum ? maximum_of<std::int32_t> : add<std::int32_t>;
    case DType::i64: return maximum ? maximum_of<std::int64_t> : add<std::int64_t>;
    case DType::u8: return maximum ? maximum_of<std::uint8_t> : add<std::uint8_t>;
    case DType::u32: return maximum ? maximum_of<std::uint32_t> : add<std::uint32_t>;
    case DType::u64: return maximum ? maximum_of<std::uint64_t> : add<std::uint64_t>;
    case DType::boolean: return nullptr;
  }
  return nullptr;
}

WidenedSum widened_sum_of(DType dtype) {
  CHECK(dtype == DType::bf16 || dtype == DType::f16, "sums of {} are not widened", name_of(dtype));
  if (dtype == DType::bf16) return {widen_bf16, add_bf16, round_bf16};
  return {widen_f16, add_f16, round_f16};
}

}  // namespace systole
