#include "predict/plan/estimated.h"

#include <algorithm>

namespace systole {
namespace {

// Adds the steps of this share of all, which these Programs do.
void add_steps(const CandidatePrograms& programs, double share, const HardwareOption& offered, Estimated& estimated) {
  const StepParts parts = step_parts(programs.step, offered.cluster, offered.kernels);
  const StepTime step = step_time(parts, offered.stack);
  estimated.step.seconds += share * step.seconds;
  for (int s = 0; s < kNumStepShares; ++s)
    estimated.step[static_cast<StepShare>(s)] += share * step[static_cast<StepShare>(s)];
  estimated.model_flops += share * parts.model_flops;
  estimated.lengths.emplace_back(step.seconds);
  const Program* before = nullptr;
  for (const auto& program : programs.stages) {
    if (program.get() == before) continue;
    before = program.get();
    const DeviceMemory memory = device_memory(*program, offered.kernels, offered.stack);
    if (estimated.memory.terms.empty() || memory.total() > estimated.memory.total()) estimated.memory = memory;
  }
}

}  // namespace

Result<ComposedTotals> composed_totals(const Composer& composer, const Candidate& candidate,
                                       const HardwareOption& offered) {
  const auto time = [&](const StepRecord& step) {
    return Seconds(step_time(step_parts(step, offered.cluster, offered.kernels), offered.stack).seconds);
  };
  ComposedTotals totals;
  for (const StepsOfLength& one : composer.steps()) {
    const std::int64_t batch = one.composer->asked().train.batch;
    const Result<ComposedCost> step = one.composer->compose(candidate, batch);
    if (step.ok()) {
      totals.step += time(step->step) * one.share;
      totals.memory = std::max(totals.memory, step->memory_at_least(offered.kernels, offered.stack));
    } else {
      totals.step += time(*TRY(one.composer->counted(candidate, batch))) * one.share;
    }
  }
  return totals;
}

Result<Estimated> estimate_candidate(const Workload& asked, const Composer& composer, const Candidate& candidate,
                                     const HardwareOption& offered, const StorageWish& wish) {
  Estimated estimated;
  estimated.candidate = candidate;
  for (const StepsOfLength& steps : composer.steps()) {
    const std::int64_t length = steps.composer->length();
    std::vector<std::int64_t> lengths;
    if (length > 0) lengths.push_back(length);
    add_steps(TRY(programs_of(with_length(asked, length), candidate, composer.target(), true, lengths)), steps.share,
              offered, estimated);
  }
  if (composer.shapes().empty()) estimated.lengths.clear();
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
