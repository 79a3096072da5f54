#pragma once
// The results of a suite on one or several models: values beside each other, differences to the first model over the
// same items, and whether they are as good as is required.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "execute/serve/eval/evaluate.h"
#include "ground/base/requirement.h"

namespace systole {

struct EvaluatedModel {
  std::string name;
  std::optional<std::int64_t> step;  // of a run's checkpoint
  std::vector<TaskScores> tasks;     // those of the suite, in its order
  std::string hash = {};             // ServedModel::hash; empty: not asked for
};

// A bound that every model must keep: "colours.acc>=0.71".
struct EvalRequirement : Requirement {
  std::size_t task_index = 0, metric_index = 0;  // in the suite, and in metrics_of
};

// `requirement.metric` is TASK.METRIC. Errors: invalid: it is not; not_found: the suite has no such task, or the task no
// such metric.
Result<EvalRequirement> requirement_of(const Requirement& requirement, const EvalSuite& suite);

// What is not met: "tiny: required is colours.acc>=0.71, and it is 0.25".
std::vector<std::string> unmet(const std::vector<EvalRequirement>& requirements,
                               const std::vector<EvaluatedModel>& models);

// {"suite": …, "suite_sha256": …, "files": [{"path", "sha256"}], "models": [{"name", "step"}], "tasks": [{"task", "kind", "items", "metrics": [{"metric", "values":
// [estimate of each model], "differences": [estimate of each model but the first, less the first]}]}], "unmet": […]};
// of one model also "metrics": {"TASK.METRIC": value}.
// An estimate is {"value", "standard_error", "low", "high"}; all but the value are null for a single item.
Node results_node(const EvalSuite& suite, const std::vector<EvaluatedModel>& models,
                  const std::vector<std::string>& unmet);

}  // namespace systole
