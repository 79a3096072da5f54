#include "describe/graph/type.h"

namespace systole {

Type::Type(DType d, Shape s, std::vector<std::string> n) : dtype(d), shape(std::move(s)), names(std::move(n)) {
  CHECK(names.size() == shape.size(), "{} names for {} dims", names.size(), shape.size());
}

std::string to_string(const Type& type) {
  std::string text = fmt::format("{}[", name_of(type.dtype));
  for (int i = 0; i < type.ndim(); ++i) {
    if (i > 0) text += ", ";
    if (!type.name(i).empty()) text += type.name(i) + "=";
    text += std::to_string(type.size(i));
  }
  return text + "]";
}

Type slice_type(const Type& stacked) {
  CHECK(stacked.ndim() > 0, "a scalar has no slices");
  return Type(stacked.dtype, Shape(stacked.shape.begin() + 1, stacked.shape.end()),
              {stacked.names.begin() + 1, stacked.names.end()});
}

Type stacked_type(const Type& type, std::int64_t count, const std::string& name) {
  Type stacked = type;
  stacked.shape.insert(stacked.shape.begin(), count);
  stacked.names.insert(stacked.names.begin(), name);
  return stacked;
}

}  // namespace systole
