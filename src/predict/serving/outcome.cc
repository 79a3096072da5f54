#include "predict/serving/outcome.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "ground/base/philox.h"

namespace systole {
namespace {

constexpr std::size_t kBlocks = 20;  // of a bootstrap
constexpr std::uint64_t kBootstrapKey = 0x626f6f74;

double percentile_of(std::vector<double>& values, double q) {
  if (values.empty()) return 0;
  const auto rank = static_cast<std::size_t>(std::max(1.0, std::ceil(q * static_cast<double>(values.size()))));
  const auto nth = values.begin() + static_cast<std::ptrdiff_t>(std::min(rank, values.size()) - 1);
  std::nth_element(values.begin(), nth, values.end());
  return *nth;
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

// `statistic` may reorder its argument. Blocks wrap around, so that every value is drawn alike.
BoundedNumber bounded(std::span<const double> values, int resamples,
                      const std::function<double(std::vector<double>&)>& statistic) {
  std::vector<double> sample(values.begin(), values.end());
  BoundedNumber result;
  result.value = result.low = result.high = statistic(sample);
  if (resamples == 0 || values.size() < 2) return result;
  const std::size_t blocks = std::min(kBlocks, values.size()), length = (values.size() + blocks - 1) / blocks;
  PhiloxStream bits(kBootstrapKey);
  std::vector<double> statistics;
  for (int r = 0; r < resamples; ++r) {
    sample.clear();
    while (sample.size() < values.size()) {
      const std::size_t begin = bits.below(values.size());
      for (std::size_t i = 0; i < length && sample.size() < values.size(); ++i)
        sample.push_back(values[(begin + i) % values.size()]);
    }
    statistics.push_back(statistic(sample));
  }
  result.low = std::min(result.value, percentile_of(statistics, 0.025));
  result.high = std::max(result.value, percentile_of(statistics, 0.975));
  return result;
}

}  // namespace

BoundedNumber percentile(std::span<const double> values, double q, int resamples) {
  return bounded(values, resamples, [q](std::vector<double>& sample) { return percentile_of(sample, q); });
}

BoundedNumber mean(std::span<const double> values, int resamples) { return bounded(values, resamples, mean_of); }

double ServingOutcome::refused_share() const {
  return requests == too_long ? 0 : static_cast<double>(refused) / static_cast<double>(requests - too_long);
}

ServingOutcome outcome_of(const SimulatedServing& played, int resamples) {
  ServingOutcome outcome;
  const std::span counted = std::span(played.requests).subspan(played.requests.size() / 10);
  const Seconds begin = counted.front().arrived, end = counted.back().arrived;
  std::vector<double> queue, ttft, tpot;
  for (const SimulatedRequest& request : counted) {
    ++outcome.requests;
    if (request.admission == Admission::queue_full) ++outcome.refused;
    if (request.admission == Admission::too_long) ++outcome.too_long;
    if (request.admission != Admission::accepted) continue;
    queue.push_back(request.queue().count());
    ttft.push_back(request.first_token().count());
    if (request.answer > 1) tpot.push_back(request.per_token().count());
  }
  outcome.queue_mean = mean(queue, resamples);
  outcome.ttft_p50 = percentile(ttft, 0.5, resamples);
  outcome.ttft_p95 = percentile(ttft, 0.95, resamples);
  outcome.tpot_p50 = percentile(tpot, 0.5, resamples);
  outcome.tpot_p95 = percentile(tpot, 0.95, resamples);
  const double time = (end - begin).count();
  if (time <= 0) return outcome;
  std::int64_t tokens = 0, ended = 0;
  Seconds busy;
  for (const SimulatedServing::Step& step : played.steps) {
    if (step.end > begin && step.end <= end) tokens += step.tokens;
    busy += std::max(Seconds(), std::min(step.end, end) - std::max(step.begin, begin));
  }
  for (const SimulatedRequest& request : played.requests)
    if (request.admission == Admission::accepted && request.ended > begin && request.ended <= end) ++ended;
  outcome.tokens_per_second = static_cast<double>(tokens) / time;
  outcome.requests_per_second = static_cast<double>(ended) / time;
  outcome.busy = busy.count() / time;
  return outcome;
}

}  // namespace systole
