#include "operate/cli/plan_here.h"

#include "operate/cli/session.h"

namespace systole::cli {

Result<std::optional<ThisMachine>> this_machine(const Workload& asked, std::int64_t parameters, Clock& clock) {
  Workload workload = asked;
  workload.mesh.clear();
  ThisMachine here;
  here.limit = limit_of(workload, {});
  if (Bytes(parameters * size_of(workload.train.precision.parameter)) > here.limit) return std::optional<ThisMachine>();
  const Machine machine = TRY(open_machine("cpu", workload.resources, clock));
  const Job job = TRY(make_job(workload, *machine.device));
  here.name = machine.device->target().name;
  const Estimate times = estimate(*job.program, machine.speed);
  if (!times.unknown) here.step = times.schedule_named("train").time;
  here.memory = plan_memory(*job.program, OutsideArena()).total();
  here.calibrated = machine.speed.calibrated;
  return std::optional(std::move(here));
}

}  // namespace systole::cli
