#pragma once
// A registered model: one version of a name, as the registry tells it (registry.h).
//
//   tiny:2             version 2 of the name "tiny"
//   tiny@production    its version that is in production
//   tiny               its newest version that is not archived
//
// Where a command takes a model, "models:" stands before it: "models:tiny@production".

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/document.h"
#include "ground/base/result.h"

namespace systole {

enum class ModelStage { none, staging, production, archived };
const char* name_of(ModelStage stage);
std::optional<ModelStage> model_stage_named(std::string_view name);
// One version of a name at most is in it: another that comes takes its place, and it is archived.
bool is_for_one(ModelStage stage);

struct Promotion {
  std::string at, by;  // ISO 8601 UTC; user@host
  ModelStage from = ModelStage::none, to = ModelStage::none;
  std::vector<std::string> required;  // that its metrics met, as "accuracy>=0.71"
  bool operator==(const Promotion&) const = default;
};

// What a model was made from: a checkpoint that its run began from, weights, another registered model.
struct ModelParent {
  std::string from, hash;  // hash: of the weights; may be empty
  bool operator==(const ModelParent&) const = default;
};

struct RegisteredModel {
  std::string name;
  std::int64_t version = 0;                   // from 1, of each name
  std::string at, by;                         // when and by whom it was registered
  std::string path;                           // a run's folder, the folder of a published model, or a GGUF file
  std::optional<std::int64_t> step;           // of the run's checkpoint; nothing: a published model
  std::map<std::string, std::string> sha256;  // of its files; of a checkpoint its manifest, which hashes the rest
  std::string workload_sha256, plan_sha256;   // of the run's documents; empty: none
  std::string data;                           // key of the run's dataset; empty: none
  std::vector<ModelParent> parents;
  std::map<std::string, double> metrics;  // finite
  ModelStage stage = ModelStage::none;
  std::vector<Promotion> promotions;  // oldest first

  std::string id() const;      // "tiny:2"
  std::string source() const;  // "step 100 of runs/tiny-1", or the path of a published model
  bool operator==(const RegisteredModel&) const = default;
};
Node to_node(const RegisteredModel& model);

struct ModelReference {
  std::string name;
  std::optional<std::int64_t> version;
  std::optional<ModelStage> stage;  // not both
};

// Whether a command's argument is the name of a registered model: it begins with "models:".
bool names_registered_model(std::string_view argument);
// With or without "models:". Errors: invalid.
Result<ModelReference> parse_model_reference(std::string_view text);
// A name: letters, digits, '.', '_', '-', at most 100; the first one a letter or a digit. Errors: invalid.
Status check_model_name(std::string_view name);

// Errors: not_found, with those there are.
Result<const RegisteredModel*> find_model_in(std::span<const RegisteredModel> models, const ModelReference& reference);

}  // namespace systole
