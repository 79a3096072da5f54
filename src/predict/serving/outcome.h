#pragma once
// What a simulated server does for its requests: latencies, throughput, refusals.

#include <cstdint>
#include <span>

#include "predict/serving/simulate.h"

namespace systole {

// A number with its 95% interval, by a block bootstrap (Künsch, "The jackknife and the bootstrap for general stationary
// observations", Annals of Statistics 1989): latencies of neighbours depend on each other, so whole stretches of
// requests are drawn again.
struct BoundedNumber {
  double value = 0, low = 0, high = 0;
};

// `q`: 0 … 1, by the nearest rank. 0 of nothing. `resamples` 0: low = high = value.
BoundedNumber percentile(std::span<const double> values, double q, int resamples);
BoundedNumber mean(std::span<const double> values, int resamples);

constexpr int kResamples = 200;

struct ServingOutcome {
  std::int64_t requests = 0;               // that are counted below: all but the first tenth, which meet an idle server
  std::int64_t refused = 0, too_long = 0;  // of them: as many wait as may; the prompt is longer than the cache
  // Seconds, of accepted requests. ttft: from arrival to the first token. tpot: per further token.
  BoundedNumber queue_mean, ttft_p50, ttft_p95, tpot_p50, tpot_p95;
  // From the first to the last arrival that is counted.
  double requests_per_second = 0;  // that ended
  double tokens_per_second = 0;    // of answers
  double busy = 0;                 // fraction of the time
  double refused_share() const;    // of those that are not too long
};

// REQUIRES: at least 2 requests.
ServingOutcome outcome_of(const SimulatedServing& played, int resamples = kResamples);

}  // namespace systole
