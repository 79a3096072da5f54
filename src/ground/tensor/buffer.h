#pragma once
// A host tensor that owns its bytes. Checkpoints, tests and the reference backend use it.

#include <cstddef>
#include <initializer_list>
#include <span>
#include <vector>

#include "ground/tensor/dtype.h"
#include "ground/tensor/shape.h"

namespace systole {

class HostTensor {
 public:
  HostTensor() = default;
  HostTensor(DType dtype, Shape shape);                                  // zeros
  HostTensor(DType dtype, Shape shape, std::span<const double> values);  // REQUIRES: one value per element

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  std::int64_t size() const { return size_; }
  std::span<std::byte> bytes() { return bytes_; }
  std::span<const std::byte> bytes() const { return bytes_; }

  double at(std::int64_t index) const { return load(dtype_, bytes_.data(), index); }
  void set(std::int64_t index, double value) { store(dtype_, bytes_.data(), index, value); }
  std::vector<double> values() const;
  // REQUIRES: sizeof(T) is the element's size.
  template <typename T>
  std::span<T> as() {
    return {reinterpret_cast<T*>(bytes_.data()), static_cast<std::size_t>(size_)};
  }
  template <typename T>
  std::span<const T> as() const {
    return {reinterpret_cast<const T*>(bytes_.data()), static_cast<std::size_t>(size_)};
  }

  bool operator==(const HostTensor&) const = default;  // bit for bit

 private:
  DType dtype_ = DType::f32;
  Shape shape_;
  std::int64_t size_ = 0;
  std::vector<std::byte> bytes_;
};

}  // namespace systole
