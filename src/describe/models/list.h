#pragma once
// Every family of models, in one explicit list.

#include <span>

#include "describe/models/model.h"
#include "describe/spec/workload.h"

namespace systole {

struct ModelFamily {
  ModelSpec::Family family;
  const char* name;
  std::unique_ptr<const Model> (*make)(const ModelSpec& spec);
};
std::span<const ModelFamily> model_families();

// The model that a workload asks for. Errors: Failure(invalid) that names the key, as make_decoder and make_mlp.
std::unique_ptr<const Model> make_model(const ModelSpec& spec);

}  // namespace systole
