// plan-is-run: FLOPs and bytes that the Program states equal, as integers, what was counted: on the reference device by
// scalars that count themselves and by the addresses of what each kernel touched.

#include <gtest/gtest.h>

#include "execute/backends/reference/reference.h"
#include "laws/tiny_laws.h"

namespace systole::laws {
namespace {

// Of all schedules that there are.
void expect_all_planned(TinyJob& job, int steps) {
  expect_planned(job, "train", steps);
  for (const char* schedule : {"evaluate", "snapshot"}) {
    if (job.program().find_schedule(schedule) != nullptr) expect_planned(job, schedule);
  }
}

TEST(PlanIsRunReference, decoders_under_every_policy_precision_and_microbatching) {
  const Batch batch = language_batch(4, 11, 3);
  for (const DecoderConfig& config : {tiny_gpt(), tiny_llama(), tiny_parallel(), tiny_windowed()}) {
    const auto model = make_decoder(config);
    for (const bool chains : {false, true}) {
      for (const Strategy& base : {exact_strategy(), f32_strategy(), bf16_strategy()}) {
        for (const int microbatches : {1, 4}) {
          for (const auto policy :
               {RecomputePolicy::Kind::none, RecomputePolicy::Kind::attention, RecomputePolicy::Kind::block}) {
            Strategy strategy = base;
            strategy.microbatches = microbatches;
            strategy.recompute.kind = policy;
            TinyJob job(*model, 4, strategy, make_reference_device(chains));
            job.begin();
            job.set_batch(batch);
            expect_all_planned(job, 2);
          }
        }
      }
    }
  }
}

TEST(PlanIsRunReference, mlp_with_momentum) {
  const auto model = make_mlp(tiny_mlp());
  Strategy strategy = f32_strategy();
  strategy.optimizer.kind = UpdateRule::Kind::sgd;
  strategy.optimizer.sgd.momentum = 0.9;
  TinyJob job(*model, 4, strategy, make_reference_device());
  job.begin();
  job.set_batch(regression_batch(4, 7, 3, 1));
  expect_all_planned(job, 3);
}

}  // namespace
}  // namespace systole::laws
