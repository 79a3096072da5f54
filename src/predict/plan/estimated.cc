#include "predict/plan/estimated.h"

namespace systole {

Result<Estimated> estimate_candidate(const Workload& asked, const Target& target, const Candidate& candidate,
                                     const HardwareOption& offered, double steps) {
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
  estimated.total = Seconds(estimated.step.seconds * steps);
  if (offered.price) estimated.dollars = *offered.price * estimated.total;
  const double peak = products_of(offered.cluster.chip, offered.kernels.products).peak.count();
  estimated.utilisation =
      parts.model_flops / (estimated.step.seconds * peak * static_cast<double>(offered.cluster.devices));
  return estimated;
}

}  // namespace systole
