#pragma once
// The lines of the registry's log, and the models that they tell. What a line has besides the fields of every audit line
// (operate/cluster/audit.h):
//
//   register   "format": 1, "model": name, "version", "path", "step" or null, "sha256": {file: hash}, "workload_sha256",
//              "plan_sha256", "data", "parents": [{"from", "hash"}], "metrics": {name: number}
//   promote    "format": 1, "model", "version", "from", "to", "required": ["accuracy>=0.71"],
//              "archived": the version whose place it took, or null

#include <span>
#include <string>
#include <vector>

#include "operate/registry/registered_model.h"

namespace systole {

inline constexpr const char* kRegisterAct = "register";
inline constexpr const char* kPromoteAct = "promote";

Node register_line(const RegisteredModel& model);
// `promotion`: without at and by.
Node promote_line(const RegisteredModel& model, const Promotion& promotion, std::optional<std::int64_t> archived);

// By name, then version. `file`: for messages. Errors, at their line: corrupt; unsupported, a newer format or act.
Result<std::vector<RegisteredModel>> models_in(std::span<const Node> lines, const std::string& file);

}  // namespace systole
