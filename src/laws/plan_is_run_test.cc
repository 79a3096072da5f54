// plan-is-run: a Program's FLOPs and bytes equal, as integers, the counted ones: on the reference device by scalars
// that count their operations and by the addresses that each kernel touched.

#include <gtest/gtest.h>

#include "execute/backends/reference/reference.h"
#include "laws/tiny_laws.h"

namespace systole::laws {
namespace {

// For all its schedules.
void expect_all_planned(TinyJob& job, int steps) {
  expect_planned(job, "train", steps);
  for (const char* schedule : {"evaluate", "snapshot"}) {
    if (job.program().find_schedule(schedule) != nullptr) expect_planned(job, schedule);
  }
}

TEST(PlanIsRunReference, decoders_under_every_policy_precision_and_microbatching) {
  const Batch batch = language_batch(4, 11, 3);
  const DecoderSpec families[] = {tiny_gpt(), tiny_llama(), tiny_parallel(), tiny_windowed(), tiny_mixture()};
  const Strategy bases[] = {exact_strategy(), f32_strategy(), bf16_strategy()};
  const RecomputePolicy::Kind policies[] = {RecomputePolicy::Kind::none, RecomputePolicy::Kind::attention,
                                            RecomputePolicy::Kind::block};
  for (std::size_t f = 0; f < std::size(families); ++f) {
    const auto model = make_decoder(families[f]);
    for (const std::size_t chains : {0, 1}) {
      for (std::size_t b = 0; b < std::size(bases); ++b) {
        for (const std::size_t cut : {0, 1}) {
          for (std::size_t p = 0; p < std::size(policies); ++p) {
            if (!is_tried({f, chains, b, cut, p}, 3)) continue;
            Strategy strategy = bases[b];
            strategy.microbatches = cut == 1 ? 4 : 1;
            strategy.recompute.kind = policies[p];
            TinyJob job(*model, 4, strategy, make_reference_device(chains == 1));
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
