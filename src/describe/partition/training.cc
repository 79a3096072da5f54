#include "describe/partition/training.h"

#include "describe/partition/training_policy.h"

namespace systole {
namespace {

PipelineStrategy pipeline_on(const Mesh& mesh, const Strategy& strategy) {
  PipelineStrategy pipeline = strategy.pipeline;
  pipeline.stages = static_cast<int>(mesh.size_along(kPipelineAxis));
  return pipeline;
}

// Exact training and probes are not supported with a pipeline or an axis "context".
void check_supported(const Mesh& mesh, const Strategy& strategy, bool staged) {
  const bool exact = strategy.logical_shards > 0;
  if (!exact && strategy.probes.empty()) return;
  const char* what = exact ? "exact training" : "probes";
  const auto hint = [&](const char* axis) {
    return exact ? fmt::format("train.exact: false, or a mesh without the axis {}", axis) : "run it without probes";
  };
  if (staged) fail(error(ErrorKind::unsupported, "a pipeline has no {} yet", what).hinted(hint(kPipelineAxis)));
  if (mesh.find(kContextAxis).ok()) {
    fail(error(ErrorKind::unsupported, "a mesh with an axis '{}' has no {} yet", kContextAxis, what)
             .hinted(hint(kContextAxis)));
  }
}

std::unique_ptr<TrainingPolicy> policy_of(TrainingBuilder& builder, std::int64_t device) {
  const Strategy& strategy = builder.strategy();
  const PipelineStrategy pipeline = pipeline_on(builder.mesh(), strategy);
  const bool staged = pipeline.num_chunks() > 1;
  check_supported(builder.mesh(), strategy, staged);
  if (staged) return pipeline_training(builder, pipeline, device);
  if (strategy.logical_shards > 0) return exact_training(builder, device);
  return plain_training(builder);
}

}  // namespace

std::string train_schedule(std::int64_t length) { return fmt::format("train.{}", length); }
bool is_train_schedule(std::string_view name) { return name == "train" || name.starts_with("train."); }
std::string shape_prefix(std::int64_t length) { return fmt::format("{}/", length); }

Program training_program(const std::string& name, const Graph& loss, const std::optional<Graph>& evaluation,
                         const Mesh& mesh, const Strategy& strategy, const Target& target,
                         const WorkspaceOf& workspace_of, std::int64_t device, std::span<const StepShape> shapes) {
  if (strategy.microbatches < 1) fail(error(ErrorKind::invalid, "{} microbatches", strategy.microbatches));
  TrainingBuilder builder(name, without_single_axes(mesh), strategy, target, workspace_of);
  CHECK(shapes.empty() || strategy.probes.empty(), "steps of several shapes have no probes");
  return builder.build(*policy_of(builder, device), loss, evaluation, shapes);
}

}  // namespace systole
