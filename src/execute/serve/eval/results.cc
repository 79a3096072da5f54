#include "execute/serve/eval/results.h"

#include <algorithm>
#include <cmath>

#include "ground/base/nearest.h"
#include "ground/base/number_from.h"

namespace systole {
namespace {

Node node_of(const MetricEstimate& estimate) {
  const bool known = estimate.standard_error.has_value();
  return Node::map({{"value", estimate.value},
                    {"standard_error", known ? Node(*estimate.standard_error) : Node()},
                    {"low", known ? Node(estimate.low()) : Node()},
                    {"high", known ? Node(estimate.high()) : Node()}});
}

Node metric_node(const std::vector<EvaluatedModel>& models, std::size_t task, std::size_t metric) {
  const auto of = [&](const EvaluatedModel& model) -> const Metric& { return model.tasks[task].metrics[metric]; };
  Node values = Node::sequence(), differences = Node::sequence();
  for (const EvaluatedModel& model : models) {
    values.push(node_of(estimate(of(model))));
    if (&model != &models.front()) differences.push(node_of(difference(of(model), of(models.front()))));
  }
  return Node::map(
      {{"metric", of(models.front()).name}, {"values", std::move(values)}, {"differences", std::move(differences)}});
}

Error not_a_requirement(std::string_view text) {
  return error(ErrorKind::invalid, "'{}' is no requirement", text)
      .hinted("--require 'TASK.METRIC>=0.71'; >, <= and < too");
}

}  // namespace

bool Requirement::met_by(double value) const {
  if (value == bound) return equal;
  return above ? value > bound : value < bound;
}

Result<Requirement> parse_requirement(std::string_view text, const EvalSuite& suite) {
  const std::size_t sign = text.find_first_of("<>");
  if (sign == text.npos) return not_a_requirement(text);
  const bool equal = text.substr(sign + 1).starts_with('=');
  const std::string_view name = text.substr(0, sign);
  const std::optional<double> bound = number_from<double>(text.substr(sign + (equal ? 2 : 1)));
  const std::size_t dot = name.rfind('.');
  if (!bound || !std::isfinite(*bound) || dot == name.npos) return not_a_requirement(text);
  Requirement made{.text = std::string(text), .above = text[sign] == '>', .equal = equal, .bound = *bound};
  std::vector<std::string> names;
  for (const EvalTask& task : suite.tasks) names.push_back(task.name);
  const auto task = std::ranges::find(names, name.substr(0, dot));
  if (task == names.end()) {
    return error(ErrorKind::not_found, "'{}' requires something of task '{}', which is not in {}", text,
                 name.substr(0, dot), suite.path)
        .hinted(nearest_hint(name.substr(0, dot), names));
  }
  made.task = static_cast<std::size_t>(task - names.begin());
  const std::vector<std::string> metrics = metrics_of(suite.tasks[made.task].kind);
  const auto metric = std::ranges::find(metrics, name.substr(dot + 1));
  if (metric == metrics.end()) {
    return error(ErrorKind::not_found, "task '{}' has no metric '{}'", *task, name.substr(dot + 1))
        .hinted(nearest_hint(name.substr(dot + 1), metrics));
  }
  made.metric = static_cast<std::size_t>(metric - metrics.begin());
  return made;
}

std::vector<std::string> unmet(const std::vector<Requirement>& requirements,
                               const std::vector<EvaluatedModel>& models) {
  std::vector<std::string> all;
  for (const EvaluatedModel& model : models) {
    for (const Requirement& one : requirements) {
      const double value = model.tasks[one.task].metrics[one.metric].value;
      if (!one.met_by(value))
        all.push_back(fmt::format("{}: required is {}, and it is {:.6g}", model.name, one.text, value));
    }
  }
  return all;
}

Node results_node(const EvalSuite& suite, const std::vector<EvaluatedModel>& models,
                  const std::vector<std::string>& unmet) {
  Node names = Node::sequence(), tasks = Node::sequence(), missed = Node::sequence();
  for (const EvaluatedModel& model : models)
    names.push(Node::map({{"name", model.name}, {"step", model.step ? Node(*model.step) : Node()}}));
  for (std::size_t t = 0; t < suite.tasks.size(); ++t) {
    const EvalTask& task = suite.tasks[t];
    Node metrics = Node::sequence();
    for (std::size_t m = 0; m < metrics_of(task.kind).size(); ++m) metrics.push(metric_node(models, t, m));
    tasks.push(Node::map({{"task", task.name},
                          {"kind", name_of(task.kind)},
                          {"items", task.items.size()},
                          {"metrics", std::move(metrics)}}));
  }
  for (const std::string& one : unmet) missed.push(one);
  return Node::map(
      {{"suite", suite.path}, {"models", std::move(names)}, {"tasks", std::move(tasks)}, {"unmet", std::move(missed)}});
}

}  // namespace systole
