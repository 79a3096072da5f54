#include "operate/run/row_flops.h"

#include <map>
#include <memory>

#include "execute/backends/null/null.h"
#include "execute/train/training_job.h"
#include "operate/run/machine.h"
#include "predict/perf/estimate.h"

namespace systole {
namespace {

// The workload with one row of this length in a step, on one device.
Workload of_one_row(Workload workload, std::int64_t length) {
  std::visit(
      [length](auto& family) {
        if constexpr (requires { family.context = length; }) family.context = length;
      },
      workload.model.family);
  workload.mesh.clear();
  workload.sharding.clear();
  workload.train.batch = workload.train.microbatches = 1;
  workload.train.exact = false;
  workload.data.buckets.reset();
  workload.data.hold_nothing_out();
  return workload;
}

}  // namespace

Result<std::function<double(std::int64_t length)>> row_flops(const Workload& workload, Clock& clock) {
  auto machine = std::make_shared<const Machine>(TRY(open_machine("reference", workload.resources, clock)));
  auto known = std::make_shared<std::map<std::int64_t, double>>();
  return std::function<double(std::int64_t)>([workload, machine, known](std::int64_t length) {
    const auto [at, is_new] = known->emplace(length, 0);
    if (is_new) {
      const std::unique_ptr<Device> device = make_null_device(machine->device->target());
      const Job job = make_job(of_one_row(workload, length), *device).value();
      at->second = static_cast<double>(estimate(*job.program, machine->speed).schedule_named("train").work.model_flops);
    }
    return at->second;
  });
}

Result<FlopRate> planned_flop_rate(const Plan& plan, Clock& clock) {
  const Workload& workload = plan.workload;
  if (!workload.has_model() || workload.data.kind != DataSpec::Kind::text || workload.model.target_context() > 0)
    return error(ErrorKind::invalid, "the plan of '{}' is not of training on texts", workload.name);
  if (plan.time.unknown)
    return error(ErrorKind::invalid, "the plan of '{}' predicts no time: {}", workload.name, *plan.time.unknown);
  const auto flops = TRY(row_flops(workload, clock));
  const double step = flops(workload.model.context()) * static_cast<double>(workload.train.batch);
  return FlopRate(step / plan.time.step.total().count());
}

}  // namespace systole
