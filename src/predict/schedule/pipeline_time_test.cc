#include "predict/schedule/pipeline_time.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

using Kind = PipelineStrategy::Kind;

PipelineCosts even(int chunks, double forward, double backward) {
  const auto n = static_cast<std::size_t>(chunks);
  return {std::vector<Seconds>(n, Seconds(forward)), std::vector<Seconds>(n, Seconds(backward))};
}

// The time with every microbatch played.
double played(const PipelineStrategy& strategy, int microbatches, const PipelineCosts& costs) {
  std::vector<Seconds> durations = costs.forward;
  durations.insert(durations.end(), costs.backward.begin(), costs.backward.end());
  return SchedulePlayer(actions_of(strategy, microbatches)).time(durations).count();
}

TEST(PipelineTime, every_schedule_ends) {
  for (const int stages : {1, 2, 3, 4, 8}) {
    for (const int chunks : {1, 2, 3}) {
      for (const int microbatches : {stages, 2 * stages, 4 * stages}) {
        for (const Kind kind : {Kind::gpipe, Kind::one_f_one_b}) {
          const PipelineStrategy strategy{stages, chunks, kind};
          EXPECT_GT(played(strategy, microbatches, even(strategy.num_chunks(), 1, 2)), 0)
              << fmt::format("{} stages of {}, {} microbatches, {}", stages, chunks, microbatches, name_of(kind));
        }
      }
    }
  }
}

// A stage is idle for (stages - 1) / chunks_per_stage times its forward and backward of one microbatch: sections 2.2.1
// and 2.2.2 of Narayanan et al., arXiv:2104.04473.
TEST(PipelineTime, bubble) {
  for (const int stages : {2, 4, 8}) {
    for (const int microbatches : {8, 16, 32}) {
      for (const int chunks : {1, 2, 4}) {
        const PipelineStrategy strategy{stages, chunks};
        const PipelineCosts costs = even(strategy.num_chunks(), 1, 2);
        const double work = 3.0 * microbatches * chunks, end = played(strategy, microbatches, costs);
        EXPECT_DOUBLE_EQ(end - work, 3.0 * (stages - 1)) << stages << " " << microbatches << " " << chunks;
        EXPECT_DOUBLE_EQ(pipeline_time(strategy, microbatches, costs).count(), end);
      }
      const PipelineStrategy all_first{stages, 1, Kind::gpipe};
      EXPECT_DOUBLE_EQ(played(all_first, microbatches, even(stages, 1, 2)), 3.0 * (microbatches + stages - 1));
    }
  }
}

// Extrapolation from the first few rounds gives the same time as playing all of them.
TEST(PipelineTime, few_rounds_are_as_good_as_all) {
  for (const int chunks : {1, 2}) {
    const PipelineStrategy strategy{.stages = 4, .chunks_per_stage = chunks};
    PipelineCosts costs = even(strategy.num_chunks(), 1, 2);
    costs.forward[1] = Seconds(1.25);
    costs.backward[2] = Seconds(2.75);
    for (const int microbatches : {4, 16, 20, 24, 64, 256})
      EXPECT_DOUBLE_EQ(pipeline_time(strategy, microbatches, costs).count(), played(strategy, microbatches, costs))
          << chunks << " " << microbatches;
  }
}

TEST(PipelineTime, refusals) { EXPECT_THROW(actions_of({.stages = 4, .chunks_per_stage = 2}, 6), Failure); }

}  // namespace
}  // namespace systole
