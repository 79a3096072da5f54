#include "predict/plan/estimated.h"

namespace systole {

Result<Estimated> estimate_candidate(const Workload& asked, const Target& target, const Candidate& candidate,
                                     const HardwareOption& offered, const StorageWish& wish) {
  const CandidatePrograms programs = TRY(programs_of(asked, candidate, target));
  Estimated estimated;
  estimated.candidate = candidate;
  const StepParts parts = step_parts(programs.step, offered.cluster, offered.kernels);
  estimated.step = step_time(parts, offered.stack);
  estimated.model_flops = parts.model_flops;
  const Program* before = nullptr;
  for (const auto& program : programs.stages) {
    if (program.get() == before) continue;
    before = program.get();
    const DeviceMemory memory = device_memory(*program, offered.kernels, offered.stack);
    if (estimated.memory.terms.empty() || memory.total() > estimated.memory.total()) estimated.memory = memory;
  }
  set_storage(estimated, offered, wish);
  return estimated;
}

void set_storage(Estimated& estimated, const HardwareOption& offered, const StorageWish& wish) {
  const Seconds step(estimated.step.seconds);
  const WithStorage with = with_best_storage(offered.storages, step, offered.price, wish);
  estimated.storage = with.storage;
  estimated.waited = with.step - step;
  estimated.total = with.step * wish.steps;
  estimated.dollars = with.dollars;
  const double peak = products_of(offered.cluster.chip, offered.kernels.products).peak.count();
  estimated.utilisation =
      estimated.model_flops / (with.step.count() * peak * static_cast<double>(offered.cluster.devices));
}

}  // namespace systole
