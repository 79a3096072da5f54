#include "predict/plan/build_plan.h"

#include <utility>

#include "describe/program/collectives_of.h"

namespace systole {
namespace {

PlannedProgram planned_program(const PlanParts& parts, const Program& program) {
  const Schedule& train = program.schedule_named("train");
  const Work work = work_of(program, train);
  PlannedProgram planned;
  planned.hash = hash_of(program);
  planned.actions = static_cast<std::int64_t>(train.actions.size());
  planned.devices = parts.devices;
  planned.parameters = parts.parameters;
  planned.trainable = parts.trainable;
  planned.model_flops = Flops(work.model_flops);
  planned.executed_flops = Flops(work.flops);
  planned.moved = work.read + work.written;
  planned.sent = bytes_sent(program, train, parts.rank);
  return planned;
}

}  // namespace

Plan build_plan(PlanParts parts, const Program& program, std::string made_by, std::string made_at) {
  Plan plan;
  plan.program = planned_program(parts, program);
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
