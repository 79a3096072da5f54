#include "describe/models/parameter_list.h"

#include <cmath>

#include "describe/models/layers.h"

namespace systole {

void ParameterList::weight(const std::string& name, const std::string& dims, double stddev) {
  add(name, dims, {Init::Kind::normal, stddev}, true, trained_);
}

void ParameterList::bias(const std::string& name, const std::string& dims) {
  add(name, dims, {Init::Kind::zeros, 0}, false, trained_);
}

void ParameterList::scale(const std::string& name, const std::string& dims) {
  add(name, dims, {Init::Kind::ones, 0}, false, trained_);
}

void ParameterList::projection(const std::string& name, const std::string& in, const std::string& out, double stddev,
                               bool biased) {
  const std::string stack = name_in_layer(name) ? "l" : "";
  weight(name, stack + in + out, stddev);
  if (biased) bias(name + "_bias", stack + out);
}

void ParameterList::adapter(const std::string& name, const std::string& in, const std::string& out) {
  const std::string stack = name_in_layer(name) ? "l" : "";
  double inputs = 1;
  for (const char letter : in) inputs *= static_cast<double>(dim(letter).second);
  add(name + ".lora_a", stack + in + "r", {Init::Kind::uniform, 1 / std::sqrt(inputs)}, true, true);
  add(name + ".lora_b", stack + "r" + out, {Init::Kind::zeros, 0}, true, true);
}

const std::pair<std::string, std::int64_t>& ParameterList::dim(char letter) const {
  const auto found = dims_.find(letter);
  CHECK(found != dims_.end(), "no dim '{}'", letter);
  return found->second;
}

void ParameterList::add(const std::string& name, const std::string& dims, Init init, bool decay, bool trained) {
  Shape shape;
  std::vector<std::string> names;
  for (const char letter : dims) {
    names.push_back(dim(letter).first);
    shape.push_back(dim(letter).second);
  }
  list_.push_back({name, Type(DType::f32, std::move(shape), std::move(names)), init, trained, decay, 0});
}

}  // namespace systole
