#include "execute/serve/eval/results.h"

#include <algorithm>

#include "ground/base/nearest.h"

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

// What a registry takes: {"colours.acc": 0.71}.
Node plain_metrics(const EvalSuite& suite, const EvaluatedModel& model) {
  Node metrics = Node::map();
  for (std::size_t t = 0; t < suite.tasks.size(); ++t) {
    for (const Metric& metric : model.tasks[t].metrics)
      metrics.set(suite.tasks[t].name + "." + metric.name, metric.value);
  }
  return metrics;
}

}  // namespace

Result<EvalRequirement> requirement_of(const Requirement& requirement, const EvalSuite& suite) {
  const std::string_view text = requirement.text, name = requirement.metric;
  const std::size_t dot = name.rfind('.');
  if (dot == name.npos)
    return error(ErrorKind::invalid, "'{}' names no task", text).hinted("as in --require 'TASK.METRIC>=0.71'");
  EvalRequirement made{requirement};
  std::vector<std::string> names;
  for (const EvalTask& task : suite.tasks) names.push_back(task.name);
  const auto task = std::ranges::find(names, name.substr(0, dot));
  if (task == names.end()) {
    return error(ErrorKind::not_found, "'{}' requires something of task '{}', which is not in {}", text,
                 name.substr(0, dot), suite.path)
        .hinted(nearest_hint(name.substr(0, dot), names));
  }
  made.task_index = static_cast<std::size_t>(task - names.begin());
  const std::vector<std::string> metrics = metrics_of(suite.tasks[made.task_index].kind);
  const auto metric = std::ranges::find(metrics, name.substr(dot + 1));
  if (metric == metrics.end()) {
    return error(ErrorKind::not_found, "task '{}' has no metric '{}'", *task, name.substr(dot + 1))
        .hinted(nearest_hint(name.substr(dot + 1), metrics));
  }
  made.metric_index = static_cast<std::size_t>(metric - metrics.begin());
  return made;
}

std::vector<std::string> unmet(const std::vector<EvalRequirement>& requirements,
                               const std::vector<EvaluatedModel>& models) {
  std::vector<std::string> all;
  for (const EvaluatedModel& model : models) {
    for (const EvalRequirement& one : requirements) {
      const double value = model.tasks[one.task_index].metrics[one.metric_index].value;
      if (!one.met_by(value))
        all.push_back(fmt::format("{}: required is {}, and it is {:.6g}", model.name, one.text, value));
    }
  }
  return all;
}

Node results_node(const EvalSuite& suite, const std::vector<EvaluatedModel>& models,
                  const std::vector<std::string>& unmet) {
  Node names = Node::sequence(), files = Node::sequence(), tasks = Node::sequence(), missed = Node::sequence();
  for (const EvaluatedModel& model : models) {
    Node one = Node::map({{"name", model.name}, {"step", model.step ? Node(*model.step) : Node()}});
    if (!model.hash.empty()) one.set("hash", model.hash);
    names.push(std::move(one));
  }
  for (const EvalFile& file : suite.files) files.push(Node::map({{"path", file.path}, {"sha256", file.sha256}}));
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
  Node results = Node::map({{"suite", suite.path},
                            {"suite_sha256", suite.sha256()},
                            {"files", std::move(files)},
                            {"models", std::move(names)},
                            {"tasks", std::move(tasks)},
                            {"unmet", std::move(missed)}});
  if (models.size() == 1) results.set("metrics", plain_metrics(suite, models[0]));
  return results;
}

}  // namespace systole
