#pragma once
// Symmetric quantisation to int8 with one scale per row: x ≈ scale q, with q in [-127, 127].

#include <cstdint>
#include <span>

namespace systole {

// Products of quantised numbers with any int8 ones whose sum fits in i32, and so does 128 times the sum of the former.
constexpr std::int64_t kMostInt8Products = 132'103;  // (2^31 - 1) / (127 * 128)

// Writes q, as long as x, and returns the scale: max |x| / 127, and q = x (127 / max |x|) to the nearest even integer,
// in f32. Values that are not finite give q = 0 and a scale that is NaN; a row below 2^-100 gives q = 0. The formula of
// describe/ops/contract_int8.cc.
float quantize_row(std::span<const float> x, std::span<std::int8_t> q);

}  // namespace systole
