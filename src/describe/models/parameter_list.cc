#include "describe/models/parameter_list.h"

#include "describe/models/layers.h"

namespace systole {

void ParameterList::weight(const std::string& name, const std::string& dims, double stddev) {
  add(name, dims, {Init::Kind::normal, stddev}, true);
}

void ParameterList::bias(const std::string& name, const std::string& dims) {
  add(name, dims, {Init::Kind::zeros, 0}, false);
}

void ParameterList::scale(const std::string& name, const std::string& dims) {
  add(name, dims, {Init::Kind::ones, 0}, false);
}

void ParameterList::projection(const std::string& name, const std::string& in, const std::string& out, double stddev,
                               bool biased) {
  const std::string stack = name_in_layer(name) ? "l" : "";
  weight(name, stack + in + out, stddev);
  if (biased) bias(name + "_bias", stack + out);
}

void ParameterList::add(const std::string& name, const std::string& dims, Init init, bool decay) {
  Shape shape;
  std::vector<std::string> names;
  for (const char letter : dims) {
    const auto found = dims_.find(letter);
    CHECK(found != dims_.end(), "no dim '{}'", letter);
    names.push_back(found->second.first);
    shape.push_back(found->second.second);
  }
  list_.push_back({name, Type(DType::f32, std::move(shape), std::move(names)), init, true, decay, 0});
}

}  // namespace systole
