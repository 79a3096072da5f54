#pragma once
// The vector of a text, from the last hidden states of its tokens.

#include <cstdint>
#include <span>
#include <vector>

#include "describe/spec/pooling.h"

namespace systole {

// states: f32[tokens, size], row-major, of the text's tokens alone → f32[size]. Sums are in f64. A vector of zeros stays
// one when it is normalized. REQUIRES: at least one token.
std::vector<float> text_vector(std::span<const float> states, std::int64_t size, const PoolingSpec& pooling);

// The first `dimensions` numbers, as models trained for it (Matryoshka, arXiv:2205.13147) allow; normalized again if
// `normalize`. REQUIRES: 1 <= dimensions <= size.
void shorten(std::vector<float>& vector, std::int64_t dimensions, bool normalize);

}  // namespace systole
