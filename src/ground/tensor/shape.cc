#include "ground/tensor/shape.h"

#include <fmt/ranges.h>

#include "ground/base/error.h"

namespace systole {

std::int64_t num_elements(const Shape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) {
    CHECK(size >= 0, "size {} of a dim", size);
    if (__builtin_mul_overflow(count, size, &count) || count > (std::int64_t{1} << 62)) {
      fail(error(ErrorKind::invalid, "the shape {} has more than 2^62 elements", to_string(shape)));
    }
  }
  return count;
}

std::vector<std::int64_t> strides_of(const Shape& shape) {
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

Bytes bytes_of(DType dtype, const Shape& shape) { return Bytes(num_elements(shape) * size_of(dtype)); }

std::string to_string(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

}  // namespace systole
