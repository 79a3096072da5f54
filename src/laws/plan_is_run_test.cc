// plan-is-run: FLOPs and bytes that the Program states equal, as integers, what was counted: on the reference device by
// scalars that count themselves and by the addresses of what each kernel touched.

#include <gtest/gtest.h>

#include "execute/backends/reference/reference.h"
#include "laws/tiny_job.h"

namespace systole::laws {
namespace {

void expect_planned(TinyJob& job, int steps) {
  const Program& program = job.program();
  std::vector<std::int64_t> calls(program.functions.size(), 0);
  const auto count = [&](const char* schedule, int times) {
    const Schedule* s = program.find_schedule(schedule);
    if (s == nullptr) return;
    for (const Action& action : s->actions) calls[static_cast<std::size_t>(action.function)] += times;
  };
  count("train", steps);
  count("evaluate", 1);
  count("snapshot", 1);
  for (int i = 0; i < steps; ++i) job.step();
  for (const char* schedule : {"evaluate", "snapshot"}) {
    if (const Schedule* s = program.find_schedule(schedule)) job.executor().run(*s).value();
  }
  for (std::size_t f = 0; f < program.functions.size(); ++f) {
    const Function& function = program.functions[f];
    const WorkCounters& counted = job.executor().counters()[f];
    const Work planned = function.work * calls[f];
    SCOPED_TRACE(function.name);
    EXPECT_EQ(counted.flops + counted.skipped_flops, planned.flops);
    EXPECT_EQ(counted.transcendentals + counted.skipped_transcendentals, planned.transcendentals);
    EXPECT_EQ(counted.bytes_read, planned.read.count());
    EXPECT_EQ(counted.bytes_written, planned.written.count());
  }
}

class PlanIsRun : public testing::TestWithParam<int> {};

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
            expect_planned(job, 2);
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
  expect_planned(job, 3);
}

}  // namespace
}  // namespace systole::laws
