#pragma once
// A result type in attributes, so that text alone rebuilds the node: {dtype="f32", names="batch,,head", shape=[4, 3,
// 8]}; no `names` when no dim has one.

#include "describe/graph/op.h"

namespace systole::ops {

void set_shape(Attrs& attrs, const Type& type);  // shape and names
void set_type(Attrs& attrs, const Type& type);   // and dtype
// The type with the attributes' shape and names. Errors: Failure(invalid) that begins with `label` when a size is
// negative, there are too many elements, or the names are not one per dim.
Type shaped_as(const Attrs& attrs, DType dtype, const char* label);
Attrs with_shape(Attrs attrs, const Shape& shape);  // another shape, the same names

std::vector<OpAttr> shape_attrs();  // how the table of ops describes them

}  // namespace systole::ops
