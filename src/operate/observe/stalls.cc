#include "operate/observe/stalls.h"
#include "ground/base/counted.h"

#include <algorithm>
#include <vector>

namespace systole {
namespace {

Seconds median_of(std::span<const StepEnded> steps, Category category) {
  std::vector<Seconds> times;
  for (const StepEnded& step : steps) times.push_back(step.seconds[category]);
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

}  // namespace

std::optional<Stalls> find_stalls(std::span<const StepEnded> steps, Category category) {
  if (steps.empty()) return std::nullopt;
  const Seconds median = median_of(steps, category), limit = std::max(Seconds(1e-3), median * 3.0);
  Stalls stalls;
  Seconds whole{};
  for (const StepEnded& step : steps) {
    whole += step.seconds.total();
    const Seconds time = step.seconds[category];
    if (time <= limit) continue;
    ++stalls.steps;
    stalls.took += time - median;
    if (time > stalls.longest) stalls.longest = time, stalls.longest_step = step.step;
  }
  stalls.of = static_cast<std::int64_t>(steps.size());
  if (stalls.steps == 0 || stalls.took < whole * 0.01) return std::nullopt;
  return stalls;
}

std::string to_string(const Stalls& stalls) {
  return fmt::format("{} of {} stalled, {} in all, the longest {} at step {}", stalls.steps, counted(stalls.of, "step"),
                     to_string(stalls.took), to_string(stalls.longest), stalls.longest_step);
}

}  // namespace systole
