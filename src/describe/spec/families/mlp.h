#pragma once
// The sizes and choices of a fully connected network (describe/models/mlp).

#include <cstdint>
#include <vector>

#include "describe/spec/families/parts.h"

namespace systole {

struct MlpSpec {
  std::int64_t inputs = 0, outputs = 0;
  std::vector<std::int64_t> hidden;  // widths of the hidden layers; empty: linear regression
  Activation activation = Activation::relu;
  Loss loss = Loss::squared_error;  // cross_entropy: the outputs are class logits
  bool bias = true;
  double dropout = 0;  // after each hidden activation, in training

  const char* name() const { return "mlp"; }
  Task task() const { return loss == Loss::cross_entropy ? Task::classification : Task::regression; }
  static std::vector<ModelFamily> families();
  static void add_keys(Schema& schema);  // keys of this family only
};

}  // namespace systole
