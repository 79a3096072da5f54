#pragma once
// The explicit list of all model families.

#include "describe/models/model.h"
#include "describe/spec/workload.h"

namespace systole {

// The model of a workload. Errors: Failure(invalid) that names the key, as make_decoder and the others.
std::unique_ptr<const Model> make_model(const ModelSpec& spec);

}  // namespace systole
