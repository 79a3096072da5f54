#include "ground/tensor/buffer.h"

#include "ground/base/error.h"

namespace systole {

HostTensor::HostTensor(DType dtype, Shape shape)
    : dtype_(dtype),
      shape_(std::move(shape)),
      size_(num_elements(shape_)),
      bytes_(static_cast<std::size_t>(bytes_of(dtype, shape_).count())) {}

HostTensor::HostTensor(DType dtype, Shape shape, std::span<const double> values) : HostTensor(dtype, std::move(shape)) {
  CHECK(static_cast<std::int64_t>(values.size()) == size_, "{} values for {} elements", values.size(), size_);
  for (std::int64_t i = 0; i < size_; ++i) set(i, values[static_cast<std::size_t>(i)]);
}

std::vector<double> HostTensor::values() const {
  std::vector<double> result(static_cast<std::size_t>(size_));
  for (std::int64_t i = 0; i < size_; ++i) result[static_cast<std::size_t>(i)] = at(i);
  return result;
}

}  // namespace systole
