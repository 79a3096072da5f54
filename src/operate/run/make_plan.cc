#include "operate/run/make_plan.h"

#include <algorithm>
#include <utility>

#include "ground/base/counted.h"
#include "ground/base/version.h"
#include "operate/run/shapes_here.h"
#include "predict/plan/build_plan.h"

namespace systole {
namespace {

Seconds of_function(const ScheduleEstimate& schedule, std::string_view name) {
  for (const auto& [function, time] : schedule.by_function) {
    if (function == name) return time;
  }
  return Seconds();
}

TimeByCategory step_time(const ScheduleEstimate& train) {
  TimeByCategory time;
  time[Category::update] = of_function(train, "update") + of_function(train, "norm");
  time[Category::reduce] = of_function(train, "reduce") + of_function(train, "merge") + of_function(train, "stages");
  for (const auto& [function, spent] : train.by_function) {  // between stages
    if (function.starts_with("send") || function.starts_with("receive")) time[Category::reduce] += spent;
  }
  time[Category::compute] = train.time - time[Category::update] - time[Category::reduce];
  return time;
}

std::int64_t evaluation_batches(const PlannedRun& p) {
  if (p.job.evaluation_rows == 0) return 0;
  std::int64_t rows = p.workload.data.held_out_rows;
  if (p.data.dataset && p.data.dataset->held_out) rows = p.data.dataset->held_out->packing.rows();
  if (p.data.mixture) return p.data.mixture->held_out_batches(p.job.evaluation_rows);
  return (rows + p.job.evaluation_rows - 1) / p.job.evaluation_rows;
}

// How many times an interval elapses in the run.
double times_of(const Interval& interval, double steps, Seconds whole) {
  if (interval.steps > 0) return steps / static_cast<double>(interval.steps);
  return interval.time > Seconds() ? whole / interval.time : 0;
}

PlannedTime planned_time(const PlannedRun& p, const ScheduleEstimate& train, std::span<const PlannedShape> shapes) {
  PlannedTime time;
  time.unknown = p.estimate.unknown;
  time.step = step_time(train);
  if (p.feed) time.step[Category::data_wait] = p.feed->wait;
  const TrainSpec& spec = p.workload.train;
  const Seconds step = time.step.total();
  const Schedule* evaluate = p.job.program->find_schedule("evaluate");
  const Seconds evaluation =
      evaluate != nullptr ? p.estimate.schedule_named("evaluate").time * static_cast<double>(evaluation_batches(p))
                          : Seconds();
  const bool copies = p.job.program->find_schedule("snapshot") != nullptr;
  const Seconds snapshot = copies ? p.estimate.schedule_named("snapshot").time : Seconds();
  if (spec.steps) time.steps = static_cast<double>(*spec.steps);
  if (spec.tokens) time.steps = static_cast<double>(*spec.tokens) / labels_of_step(p.job, p.data, shapes);
  if (spec.time && step > Seconds()) time.steps = *spec.time / step;
  const Seconds whole = step * time.steps;
  const double saves = times_of(p.workload.checkpoint.every, time.steps, whole) + 1,
               evaluations = times_of(spec.evaluate, time.steps, whole) + 1;
  for (int c = 0; c < kNumCategories; ++c)
    time.run[static_cast<Category>(c)] = time.step[static_cast<Category>(c)] * time.steps;
  time.run[Category::snapshot] = snapshot * saves;
  time.run[Category::evaluation] = evaluation * evaluations;
  for (int c = 0; c < kNumOpClasses; ++c) {
    const auto op_class = static_cast<OpClass>(c);
    if (train.busy[op_class] > Seconds()) time.compute_by_kind.emplace_back(name_of(op_class), train.busy[op_class]);
  }
  std::sort(time.compute_by_kind.begin(), time.compute_by_kind.end(),
            [](const auto& a, const auto& b) { return a.second > b.second; });
  return time;
}

std::string strategy_text(const PlannedRun& p) {
  const Mesh& mesh = p.job.program->mesh;
  const auto rows_of = [&](std::int64_t each) {
    const std::int64_t longest = p.job.microbatch_rows * each;
    if (p.job.shapes.size() < 2) return counted(longest, "row");
    return fmt::format("{} to {}", longest, counted(p.job.shapes.front().microbatch_rows * each, "row"));
  };
  const std::string rows = fmt::format("{} of {}", counted(p.workload.train.microbatches, "microbatch"), rows_of(1));
  if (const std::optional<LogicalShards>& shards = p.job.program->shards) {
    const std::string cut =
        fmt::format("exact: {} of {}", counted(shards->shards, "logical shard"), rows_of(shards->microbatches));
    return mesh.trivial() ? "one device, " + cut
                          : fmt::format("{}, {}, {}; rank {} owns {}", counted(mesh.num_devices(), "device"),
                                        to_string(mesh), cut, p.rank, shards->owned);
  }
  if (mesh.trivial()) return "one device, " + rows;
  const char* stored = name_of(strategy_of(p.workload).sharding.stored);
  return fmt::format("each of {}, {}{}, {} of all", counted(mesh.num_devices(), "device"), to_string(mesh),
                     mesh.find("fsdp").ok() ? fmt::format(" ({} sharded over fsdp)", stored) : "", rows);
}

PlannedTarget planned_target(const PlannedRun& p) {
  const Target& target = p.job.program->target;
  PlannedTarget planned{target.name,
                        {},
                        p.machine.catalog_entry,
                        p.machine.catalog_date,
                        p.machine.catalog_hash,
                        p.machine.speed.calibrated};
  planned.facts = {{"kind", target.kind},
                   {"alignment", std::to_string(target.alignment)},
                   {"threads", std::to_string(target.threads)},
                   {"chains", target.fusion.chains ? "fused" : "not fused"}};
  if (!p.machine.isa.empty()) planned.facts["isa"] = p.machine.isa;
  for (const Link& link : target.links) {
    planned.facts["link"] =
        fmt::format("{}, {}: {}", to_string(link.latency), to_string(link.bandwidth), p.machine.link_source);
  }
  if (const auto& tls = p.machine.tls_link)
    planned.facts["link.tls"] =
        fmt::format("{}, {}: {}", to_string(tls->cost.latency), to_string(tls->cost.bandwidth), tls->source);
  return planned;
}

}  // namespace

Plan make_plan(const PlannedRun& p, Bytes limit, Clock& clock) {
  PlanParts parts;
  parts.workload = p.workload;
  parts.target = planned_target(p);
  parts.strategy = strategy_text(p);
  parts.rank = p.rank;
  parts.parameters = num_parameters(*p.job.model);
  parts.trainable = num_trainable(*p.job.model);
  parts.shapes = planned_shapes(p.job, p.epoch ? &*p.epoch : nullptr, p.estimate);
  const ScheduleEstimate train = mean_step(p.job, p.estimate, parts.shapes);
  parts.memory = {p.memory.by_owner, p.memory.arena, limit};
  parts.time = planned_time(p, train, parts.shapes);
  parts.feed = p.feed;
  const Result<double> ratio = matmul_ratio(train, p.machine.speed);
  if (ratio.ok()) parts.model_utilisation = *ratio;
  return build_plan(std::move(parts), *p.job.program, kSystoleVersion, clock.timestamp());
}

}  // namespace systole
