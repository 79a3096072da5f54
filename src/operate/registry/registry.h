#pragma once
// The registry of models of a folder of runs: an append-only log with a line for each version and each change of a stage.
// A version is never changed or removed; only its stage moves.
//
//   runs/.models/audit.jsonl    lines in a chain of hashes (operate/cluster/audit.h), each as model_log.h says
//   runs/.models/lock           of its writers: of processes that register at once, each gets a version of its own
//
//   const RegisteredModel made = TRY(register_model("runs", model, clock));               // tiny:1
//   TRY(promote_model("runs", {"tiny", 1, {}}, ModelStage::production, {}, clock));
//   TRY(find_registered("runs", TRY(parse_model_reference("tiny@production"))));          // tiny:1
//
// The artifacts stay where they are; operate/run/model_artifact.h compares them with their hashes.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ground/base/clock.h"
#include "operate/registry/metrics.h"
#include "operate/registry/registered_model.h"

namespace systole {

// By name, then version; none without a registry, which is not created. Errors: corrupt, unsupported, at their line; io.
Result<std::vector<RegisteredModel>> registered_models(const std::string& runs);
// Errors: as registered_models and find_model_in.
Result<RegisteredModel> find_registered(const std::string& runs, const ModelReference& reference);

// Adds it as the next version of its name, in stage none; returns it with version, time and author once it is durable.
// Errors: invalid (its name); as Audit::append_after.
Result<RegisteredModel> register_model(const std::string& runs, const RegisteredModel& model, Clock& clock);

struct Promoted {
  RegisteredModel model;  // in its new stage
  ModelStage from = ModelStage::none;
  std::optional<std::int64_t> archived;  // the version whose place it took
};
// Errors: as find_registered and Audit::append_after; invalid, coded requirement_not_met, one for each requirement: then
// nothing changes.
Result<Promoted> promote_model(const std::string& runs, const ModelReference& reference, ModelStage to,
                               std::span<const Requirement> requirements, Clock& clock);

}  // namespace systole
