#pragma once
// Metrics of a registered model, and the requirements that hold back its promotion.
//
//   accuracy=0.71             a metric, as a command's argument
//   {"tasks": {"arc": {"accuracy": 0.71, "examples": 500}, "model": "tiny"}}
//                             results as a document: tasks.arc.accuracy and tasks.arc.examples
//   {"metrics": {"arc.acc": 0.71}, "tasks": …}
//                             results of `systole eval`: those of "metrics" alone

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "ground/base/document.h"
#include "ground/base/requirement.h"
#include "ground/base/result.h"

namespace systole {

using Metrics = std::map<std::string, double>;

// Errors: invalid: no name, or no finite number.
Result<std::pair<std::string, double>> parse_metric(std::string_view text);

// The numbers of a document by their dotted keys, or of its map "metrics" if it has one; texts, truth values and lists
// are left out. Errors, at their place: invalid: no map, a key that is no name of a metric, two of one name, no number
// at all, more than a thousand.
Result<Metrics> metrics_in(const Node& results);

// Why `model` does not meet it, coded requirement_not_met; nothing: it does. A metric that it lacks is not met.
std::optional<Error> unmet(const Requirement& requirement, const Metrics& metrics, const std::string& model);

}  // namespace systole
