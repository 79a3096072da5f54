#pragma once
// Writes a tensor as a .npy file (NumPy's format, version 1.0: magic, a text header padded to 64 bytes, the elements).
// Types that NumPy lacks (bf16, f8) are written as f32, without loss.

#include <string>

#include "ground/tensor/dtype.h"
#include "ground/tensor/shape.h"

namespace systole {

// REQUIRES: `data` holds the shape's elements, row-major.
std::string npy_bytes(DType dtype, const Shape& shape, const std::byte* data);

}  // namespace systole
