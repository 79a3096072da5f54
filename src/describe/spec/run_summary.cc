#include "describe/spec/run_summary.h"

#include <cmath>

#include "describe/spec/plan.h"

namespace systole {

RunSummary summarize(const std::vector<std::vector<Event>>& processes, const Plan* plan) {
  RunSummary summary;
  summary.state = RunState::running;
  for (const std::vector<Event>& process : processes) {
    summary.state = state_of(process);
    summary.problem.clear();
    for (const Event& event : process) {
      if (const auto* opened = std::get_if<Opened>(&event.body)) {
        if (summary.since.empty()) summary.since = opened->at;
        if (summary.workload.empty()) summary.workload = opened->run;
      } else if (const auto* evaluated = std::get_if<Evaluated>(&event.body)) {
        summary.bits_per_byte = evaluated->bits_per_byte;
      } else if (const auto* stopped = std::get_if<Stopped>(&event.body)) {
        summary.problem = stopped->detail;
      }
    }
  }
  const std::vector<StepEnded> steps = canonical_steps(processes);
  if (!steps.empty()) {
    summary.step = steps.back().step;
    summary.tokens = steps.back().tokens;
    summary.loss = steps.back().loss;
  }
  if (plan != nullptr) {
    summary.workload = plan->workload.name;
    if (plan->time.steps > 0) summary.of = std::llround(plan->time.steps);
  }
  return summary;
}

}  // namespace systole
