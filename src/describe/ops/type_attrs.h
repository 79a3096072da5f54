#pragma once
// A result type stored in attributes, so that the text of a node is complete: {dtype="f32", names="batch,,head",
// shape=[4, 3, 8]}. `names` is absent when no dim has a name.

#include "describe/ir/op.h"

namespace systole::ops {

void set_shape(Attrs& attrs, const Type& type);  // sets shape and names
void set_type(Attrs& attrs, const Type& type);   // sets dtype, shape and names
// The type with the shape and names of the attributes. Errors: Failure(invalid) that begins with `label` when a size is
// negative, there are too many elements, or the number of names differs from the number of dims.
Type shaped_as(const Attrs& attrs, DType dtype, const char* label);
Attrs with_shape(Attrs attrs, const Shape& shape);  // replaces the shape, keeps the names

std::vector<OpAttr> shape_attrs();  // their descriptions for the generated table of ops

}  // namespace systole::ops
