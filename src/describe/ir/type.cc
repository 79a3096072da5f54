#include "describe/ir/type.h"

namespace systole {

Type::Type(DType d, Shape s, std::vector<std::string> names) : dtype(d), shape(std::move(s)) {
  CHECK(names.size() == shape.size(), "{} names for {} dims", names.size(), shape.size());
  names_ = std::make_shared<const std::vector<std::string>>(std::move(names));
}

const std::string& Type::name(int dim) const {
  static const std::string none;
  return names_ ? (*names_)[static_cast<std::size_t>(dim)] : none;
}

std::vector<std::string> Type::names() const { return names_ ? *names_ : std::vector<std::string>(shape.size()); }

void Type::add_dim(std::int64_t size, std::string name) {
  std::vector<std::string> all = names();
  all.push_back(std::move(name));
  shape.push_back(size);
  *this = Type(dtype, std::move(shape), std::move(all));
}

void Type::remove_dim(int dim) {
  std::vector<std::string> left = names();
  left.erase(left.begin() + dim);
  shape.erase(shape.begin() + dim);
  *this = Type(dtype, std::move(shape), std::move(left));
}

bool identical(const Type& a, const Type& b) {
  if (&a == &b) return true;
  return a == b && (a.names_ == b.names_ || a.names() == b.names());
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
  Type slice = stacked;
  slice.remove_dim(0);
  return slice;
}

Type stacked_type(const Type& type, std::int64_t count, const std::string& name) {
  Shape shape;
  std::vector<std::string> names;
  shape.reserve(type.shape.size() + 1);
  names.reserve(type.shape.size() + 1);
  shape.push_back(count);
  names.push_back(name);
  for (int dim = 0; dim < type.ndim(); ++dim) {
    shape.push_back(type.size(dim));
    names.push_back(type.name(dim));
  }
  return Type(type.dtype, std::move(shape), std::move(names));
}

}  // namespace systole
