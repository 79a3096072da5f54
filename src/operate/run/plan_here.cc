#include "operate/run/plan_here.h"

#include <algorithm>

#include "operate/run/plan_run.h"
#include "operate/run/shapes_here.h"

namespace systole {
namespace {

void add_times(const ScheduleEstimate& train, PlanFacts& facts) {
  facts.step = train.time;
  for (int c = 0; c < kNumOpClasses; ++c) {
    const auto kind = static_cast<OpClass>(c);
    if (train.busy[kind].count() > 0) facts.time.emplace_back(name_of(kind), train.busy[kind]);
  }
  std::ranges::sort(facts.time, std::ranges::greater(), [](const auto& row) { return row.second; });
}

}  // namespace

Result<PlanFacts> plan_here(const Workload& asked, std::int64_t parameters, Clock& clock,
                            std::span<const PlannedShape> shapes) {
  Workload workload = asked;
  workload.mesh.clear();
  PlanFacts facts;
  facts.memory_limit = limit_of(workload, {});
  const Bytes least(parameters * size_of(workload.train.precision.parameter));
  if (least > facts.memory_limit)
    return error(ErrorKind::does_not_fit, "its parameters alone take {} of {}", to_string(least),
                 to_string(facts.memory_limit));
  const Machine machine = TRY(open_machine("cpu", workload.resources, clock));
  std::vector<std::int64_t> lengths;
  for (const PlannedShape& shape : shapes) lengths.push_back(shape.length);
  const Job job = TRY(make_job(workload, *machine.device, 0, lengths));
  facts.machine = machine.device->target().name;
  facts.calibrated = machine.speed.calibrated;
  const Estimate times = estimate(*job.program, machine.speed);
  const ScheduleEstimate train = mean_step(job, times, shapes);
  facts.model_flops = Flops(train.work.model_flops);
  facts.executed_flops = Flops(train.work.flops);
  if (!times.unknown) {
    add_times(train, facts);
    const Result<double> ratio = matmul_ratio(train, machine.speed);
    if (ratio.ok()) facts.matmul_ratio = *ratio;
  }
  OutsideArena outside;
  outside.libraries = planned_libraries(*job.program, Bytes());
  const MemoryPlan memory = plan_memory(*job.program, outside);
  facts.memory = memory.by_owner;
  facts.memory_total = memory.total();
  return facts;
}

}  // namespace systole
