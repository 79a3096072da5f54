#pragma once
// Index arithmetic for reference loops, and letters for sharding rules. Tensors are dense and row-major.

#include <cstring>
#include <string>

#include "describe/ir/op.h"

namespace systole::ops {

// Calls visit(index) for each index of `shape`, the last dim fastest; once for a scalar, never when a size is 0.
template <typename Visit>
void for_each_index(const Shape& shape, Visit visit) {
  const std::int64_t count = num_elements(shape);
  Shape index(shape.size(), 0);
  for (std::int64_t i = 0; i < count; ++i) {
    visit(static_cast<const Shape&>(index));
    for (std::size_t dim = shape.size(); dim-- > 0;) {
      if (++index[dim] < shape[dim]) break;
      index[dim] = 0;
    }
  }
}

inline std::int64_t offset_of(const Shape& index, const std::vector<std::int64_t>& strides) {
  std::int64_t offset = 0;
  for (std::size_t dim = 0; dim < index.size(); ++dim) offset += index[dim] * strides[dim];
  return offset;
}

// Copies one element bit for bit. REQUIRES: equal dtypes.
inline void copy_element(const TensorView& from, std::int64_t from_index, const TensorView& to, std::int64_t to_index) {
  const std::int64_t size = size_of(to.type.dtype);
  std::memcpy(to.data + to_index * size, from.data + from_index * size, static_cast<std::size_t>(size));
}

// to[index] = from[base + Σ index·strides], for all of `to`: transpose, slice, broadcast.
inline void copy_strided(const TensorView& from, std::int64_t base, const std::vector<std::int64_t>& strides,
                         const TensorView& to) {
  std::int64_t i = 0;
  for_each_index(to.type.shape,
                 [&](const Shape& index) { copy_element(from, base + offset_of(index, strides), to, i++); });
}

// The letter of a dim in a sharding rule.
inline char letter(int dim) { return static_cast<char>('a' + dim); }
inline std::string letters(int ndim) {
  std::string all;
  for (int dim = 0; dim < ndim; ++dim) all += letter(dim);
  return all;
}

// `list[i]` with an int index, for lists with one entry per dim.
template <typename List>
auto& at(List& list, int i) {
  return list[static_cast<std::size_t>(i)];
}

}  // namespace systole::ops
