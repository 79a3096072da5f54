#pragma once
// A family's parameters, spelled with a letter for each dim: weight("blocks.{layer}.attn.q", "lehd", 0.02).

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "describe/graph/ir.h"

namespace systole {

class ParameterList {
 public:
  // Name and size of each letter's dim.
  using Dims = std::map<char, std::pair<std::string, std::int64_t>>;
  explicit ParameterList(Dims dims) : dims_(std::move(dims)) {}

  void weight(const std::string& name, const std::string& dims, double stddev);  // normal; decays
  void bias(const std::string& name, const std::string& dims);                   // zeros
  void scale(const std::string& name, const std::string& dims);                  // ones
  // A weight, and with `biased` its "<name>_bias" over `out`.
  void projection(const std::string& name, const std::string& in, const std::string& out, double stddev, bool biased);

  std::vector<Parameter> take() { return std::move(list_); }

 private:
  void add(const std::string& name, const std::string& dims, Init init, bool decay);
  Dims dims_;
  std::vector<Parameter> list_;
};

}  // namespace systole
