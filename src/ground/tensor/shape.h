#pragma once
// Shapes: the sizes of a tensor's dims, outermost first. Tensors are dense and row-major.

#include <cstdint>
#include <string>
#include <vector>

#include "ground/base/units.h"
#include "ground/tensor/dtype.h"

namespace systole {

using Shape = std::vector<std::int64_t>;

// Product of the sizes; 1 for a scalar. Errors: Failure(invalid) if it exceeds 2^62.
std::int64_t num_elements(const Shape& shape);
// Per dim: elements from one index to the next, row-major.
std::vector<std::int64_t> strides_of(const Shape& shape);
Bytes bytes_of(DType dtype, const Shape& shape);
std::string to_string(const Shape& shape);  // "[16, 256]"

}  // namespace systole
