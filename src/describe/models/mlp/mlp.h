#pragma once
// A fully connected network: hidden layers of any widths with an activation (and dropout) after each; none is the
// linear regression. Parameters "layers.<i>.weight" [in, out] and "layers.<i>.bias" [out], the last of them the
// output's. Layers of unlike widths stack on no dim, so there is no repeat.

#include "describe/models/model.h"
#include "describe/spec/workload.h"

namespace systole {

struct MlpConfig {
  std::int64_t inputs = 784;
  std::int64_t outputs = 10;
  std::vector<std::int64_t> hidden;
  ModelSpec::Activation activation = ModelSpec::Activation::relu;
  ModelSpec::Loss loss = ModelSpec::Loss::squared_error;  // cross_entropy: the outputs are logits of classes
  bool bias = true;
  double dropout = 0;  // after each hidden activation, when training
};

MlpConfig mlp_config(const ModelSpec& spec);

// Errors: Failure(invalid) that names the key.
std::unique_ptr<const Model> make_mlp(const MlpConfig& config);

}  // namespace systole
