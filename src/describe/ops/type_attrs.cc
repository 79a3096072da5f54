#include "describe/ops/type_attrs.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace systole::ops {

std::vector<OpAttr> shape_attrs() {
  return {{"shape", "ints", "sizes of the result"}, {"names", "string", "its dim names, joined by commas", false}};
}

void set_shape(Attrs& attrs, const Type& type) {
  attrs.set("shape", Ints(type.shape.begin(), type.shape.end()));
  const std::vector<std::string> names = type.names();
  const bool named = std::any_of(names.begin(), names.end(), [](const std::string& name) { return !name.empty(); });
  if (named) attrs.set("names", fmt::format("{}", fmt::join(names, ",")));
}

void set_type(Attrs& attrs, const Type& type) {
  attrs.set("dtype", std::string(name_of(type.dtype)));
  set_shape(attrs, type);
}

Type shaped_as(const Attrs& attrs, DType dtype, const char* label) {
  const Ints& sizes = attrs.get_ints("shape");
  const Shape shape(sizes.begin(), sizes.end());
  double elements = 1;
  for (const std::int64_t size : shape) {
    if (size < 0) constraint(label, "size {} in {}", size, to_string(shape));
    elements *= static_cast<double>(size);
  }
  if (elements > 0x1p62) constraint(label, "{} has more than 2^62 elements", to_string(shape));
  if (attrs.find("names") == nullptr) return Type(dtype, shape);
  const std::string& joined = attrs.get_string("names");
  std::vector<std::string> names(1);
  for (const char c : joined) {
    if (c == ',') {
      names.emplace_back();
    } else {
      names.back() += c;
    }
  }
  if (names.size() != shape.size()) constraint(label, "names \"{}\" for {} dims", joined, shape.size());
  return Type(dtype, shape, std::move(names));
}

Attrs with_shape(Attrs attrs, const Shape& shape) {
  attrs.set("shape", Ints(shape.begin(), shape.end()));
  return attrs;
}

}  // namespace systole::ops
