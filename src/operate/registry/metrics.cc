#include "operate/registry/metrics.h"

#include <algorithm>
#include <cmath>

#include "ground/base/nearest.h"
#include "ground/base/number_from.h"

namespace systole {
namespace {

constexpr std::size_t kShownName = 200;
constexpr std::size_t kMost = 1000;

std::optional<double> finite(std::string_view text) {
  const std::optional<double> number = number_from<double>(text);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

Status add_metrics(const Node& node, const std::string& path, Metrics& metrics) {
  for (const Node::Entry& entry : node.entries()) {
    if (!entry.value.is_map() && entry.value.kind() != NodeKind::number) continue;
    const std::string name = path.empty() ? entry.key : path + "." + entry.key;
    if (!is_metric_name(name)) {
      return error(ErrorKind::invalid, "'{}' is no name of a metric: it has a space, '<', '>' or '=', or is too long",
                   name.substr(0, kShownName))
          .at(entry.where())
          .hinted("rename the key");
    }
    if (entry.value.is_map()) {
      TRY(add_metrics(entry.value, name, metrics));
      continue;
    }
    const double value = TRY(entry.value.as_double());
    if (!metrics.emplace(name, value).second)
      return error(ErrorKind::invalid, "there are two numbers '{}'", name)
          .at(entry.where())
          .hinted("rename one of them");
    if (metrics.size() > kMost)
      return error(ErrorKind::invalid, "it has more than {} numbers", kMost)
          .at(entry.where())
          .hinted("leave those in that are metrics");
  }
  return {};
}

}  // namespace

Result<std::pair<std::string, double>> parse_metric(std::string_view text) {
  const std::size_t mark = std::min(text.find('='), text.size());
  const std::string_view name = text.substr(0, mark);
  const std::optional<double> value = mark == text.size() ? std::nullopt : finite(text.substr(mark + 1));
  if (is_metric_name(name) && value) return std::pair(std::string(name), *value);
  return error(ErrorKind::invalid, "'{}' is no metric: it takes a name and a number", text)
      .hinted("as in --metric accuracy=0.71");
}

Result<Metrics> metrics_in(const Node& results) {
  if (!results.is_map()) return results.wrong("a map of metrics");
  const Node* own = results.find("metrics");
  Metrics metrics;
  TRY(add_metrics(own != nullptr && own->is_map() ? *own : results, "", metrics));
  if (!metrics.empty()) return metrics;
  return error(ErrorKind::invalid, "there is no number in it")
      .at(results.where())
      .hinted(R"(a metric is an entry with a number, as {"accuracy": 0.71})");
}

std::optional<Error> unmet(const Requirement& requirement, const Metrics& metrics, const std::string& model) {
  const auto found = metrics.find(requirement.metric);
  if (found != metrics.end()) {
    if (requirement.met_by(found->second)) return std::nullopt;
    return error(ErrorKind::invalid, "{} has {} {}, and {} is required", model, requirement.metric, found->second,
                 requirement.text)
        .coded(ErrorCode::requirement_not_met);
  }
  std::vector<std::string> names;
  for (const auto& [name, value] : metrics) names.push_back(name);
  return error(ErrorKind::invalid, "{} has no metric '{}', and {} is required", model, requirement.metric,
               requirement.text)
      .coded(ErrorCode::requirement_not_met)
      .hinted(names.empty() ? "register it with --metric or --metrics" : nearest_hint(requirement.metric, names));
}

}  // namespace systole
