#pragma once
// A family's parameters, declared with one letter per dim: weight("blocks.{layer}.attn.q", "lehd", 0.02).

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "describe/ir/ir.h"

namespace systole {

class ParameterList {
 public:
  // Name and size of each letter's dim.
  using Dims = std::map<char, std::pair<std::string, std::int64_t>>;
  // `trained` false: all are frozen except adapters.
  explicit ParameterList(Dims dims, bool trained = true) : dims_(std::move(dims)), trained_(trained) {}

  void weight(const std::string& name, const std::string& dims, double stddev);  // normal; with weight decay
  void bias(const std::string& name, const std::string& dims);                   // zeros
  void scale(const std::string& name, const std::string& dims);                  // ones
  // A weight, and if `biased` its "<name>_bias" over `out`.
  void projection(const std::string& name, const std::string& in, const std::string& out, double stddev, bool biased);
  // The adapter of a projection (Hu et al., arXiv:2106.09685): "<name>.lora_a" from `in` to the dim 'r', initialized
  // uniform(1/sqrt(inputs)) as in their code, and "<name>.lora_b" from 'r' to `out`, zeros. Both have weight decay.
  void adapter(const std::string& name, const std::string& in, const std::string& out);

  std::vector<Parameter> take() { return std::move(list_); }

 private:
  const std::pair<std::string, std::int64_t>& dim(char letter) const;
  void add(const std::string& name, const std::string& dims, Init init, bool decay, bool trained);
  Dims dims_;
  bool trained_;
  std::vector<Parameter> list_;
};

}  // namespace systole
