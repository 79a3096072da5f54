#include "predict/plan/build_plan.h"

#include <cmath>
#include <utility>

#include "describe/partition/training.h"
#include "describe/program/collectives_of.h"

namespace systole {
namespace {

PlannedShape of_schedule(PlannedShape shape, const Schedule& train, const PlanParts& parts, const Program& program) {
  const Work work = work_of(program, train);
  shape.model_flops = Flops(work.model_flops);
  shape.executed_flops = Flops(work.flops);
  shape.moved = work.read + work.written;
  shape.sent = bytes_sent(program, train, parts.rank);
  return shape;
}

// The mean of the shapes' steps, to a whole number.
PlannedShape mean_of(std::span<const PlannedShape> shapes) {
  const std::vector<double> shares = step_shares(shapes);
  double model = 0, executed = 0, moved = 0, sent = 0;
  for (std::size_t s = 0; s < shapes.size(); ++s) {
    model += shares[s] * static_cast<double>(shapes[s].model_flops.count());
    executed += shares[s] * static_cast<double>(shapes[s].executed_flops.count());
    moved += shares[s] * static_cast<double>(shapes[s].moved.count());
    sent += shares[s] * static_cast<double>(shapes[s].sent.count());
  }
  PlannedShape mean;
  mean.model_flops = Flops(std::llround(model));
  mean.executed_flops = Flops(std::llround(executed));
  mean.moved = Bytes(std::llround(moved));
  mean.sent = Bytes(std::llround(sent));
  return mean;
}

PlannedProgram planned_program(const PlanParts& parts, const Program& program) {
  const Schedule& train = program.schedule_named("train");
  const PlannedShape step = parts.shapes.empty() ? of_schedule({}, train, parts, program) : mean_of(parts.shapes);
  PlannedProgram planned;
  planned.hash = hash_of(program);
  planned.actions = static_cast<std::int64_t>(train.actions.size());
  planned.devices = parts.devices;
  planned.parameters = parts.parameters;
  planned.trainable = parts.trainable;
  planned.model_flops = step.model_flops;
  planned.executed_flops = step.executed_flops;
  planned.moved = step.moved;
  planned.sent = step.sent;
  return planned;
}

}  // namespace

Plan build_plan(PlanParts parts, const Program& program, std::string made_by, std::string made_at) {
  for (PlannedShape& shape : parts.shapes) {
    const bool longest = &shape == &parts.shapes.back();
    shape =
        of_schedule(shape, program.schedule_named(longest ? "train" : train_schedule(shape.length)), parts, program);
  }
  Plan plan;
  plan.program = planned_program(parts, program);
  plan.shapes = std::move(parts.shapes);
  plan.mesh = parts.workload.mesh;
  plan.workload = std::move(parts.workload);
  plan.target = std::move(parts.target);
  plan.strategy = std::move(parts.strategy);
  plan.memory = std::move(parts.memory);
  plan.time = std::move(parts.time);
  plan.cost = std::move(parts.cost);
  plan.feed = std::move(parts.feed);
  plan.model_utilisation = parts.model_utilisation;
  plan.lost = std::move(parts.lost);
  plan.made_by = std::move(made_by);
  plan.made_at = std::move(made_at);
  return plan;
}

}  // namespace systole
