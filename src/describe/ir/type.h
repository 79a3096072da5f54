#pragma once
// The type of a tensor value: dtype, sizes and logical dim names (batch, seq, embed, heads, kv_heads, head, mlp, vocab,
// layer, …). Names say what a dim means and steer sharding; "" is an unnamed dim. Types are equal when dtype and sizes
// are; names are carried along, not compared.
//
// Text: bf16[batch=16, seq=256], f32[3, 4], f32[].

#include <memory>
#include <string>
#include <vector>

#include "ground/base/result.h"
#include "ground/tensor/dtype.h"
#include "ground/tensor/shape.h"

namespace systole {

// Copies share their names: every pass copies types, and few passes change a name.
struct Type {
  DType dtype = DType::f32;
  Shape shape;  // sizes may be set; add_dim and remove_dim change the dims

  Type() = default;
  Type(DType d, Shape s) : dtype(d), shape(std::move(s)) {}
  Type(DType d, Shape s, std::vector<std::string> names);  // REQUIRES: one name per dim

  int ndim() const { return static_cast<int>(shape.size()); }
  std::int64_t size(int dim) const { return shape[static_cast<std::size_t>(dim)]; }
  const std::string& name(int dim) const;
  std::vector<std::string> names() const;  // as many as dims
  std::int64_t num_elements() const { return systole::num_elements(shape); }
  Bytes bytes() const { return bytes_of(dtype, shape); }
  Type with(DType other) const {
    Type t = *this;
    t.dtype = other;
    return t;
  }
  void add_dim(std::int64_t size, std::string name);  // appends an innermost dim
  void remove_dim(int dim);

  bool operator==(const Type& other) const { return dtype == other.dtype && shape == other.shape; }
  friend bool identical(const Type& a, const Type& b);

 private:
  std::shared_ptr<const std::vector<std::string>> names_;  // null: no dim has a name
};

// Equal types with equal names.
bool identical(const Type& a, const Type& b);

std::string to_string(const Type& type);

// The type at one index of the outermost dim. REQUIRES: ndim > 0.
Type slice_type(const Type& stacked);
// `type` with a new outermost dim of size `count`.
Type stacked_type(const Type& type, std::int64_t count, const std::string& name);

}  // namespace systole
