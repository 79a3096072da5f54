#pragma once
// A fully connected network: hidden layers of any widths, each with an activation (and dropout); without hidden layers
// it is linear regression. Parameters "layers.<i>.weight" [in, out] and "layers.<i>.bias" [out]; the last layer is the
// output. Layers of different widths cannot be stacked, so there is no repeat.

#include "describe/models/model.h"
#include "describe/spec/families/mlp.h"

namespace systole {

// Errors: Failure(invalid) that names the key.
std::unique_ptr<const Model> make_mlp(const MlpSpec& config);

}  // namespace systole
