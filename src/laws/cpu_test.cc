// The cpu backend on whole Programs: it counts the planned work, and its results equal the reference's.

#ifdef SYSTOLE_HAS_CPU
#include "execute/backends/cpu/cpu.h"

#include <gtest/gtest.h>

#include "execute/backends/reference/reference.h"
#include "laws/tiny_laws.h"

namespace systole::laws {
namespace {

std::unique_ptr<Device> cpu() { return make_cpu_device({.threads = 2}).value(); }

TEST(PlanIsRunCpu, decoders_under_every_policy_precision_and_microbatching) {
  const DecoderSpec families[] = {tiny_gpt(), tiny_llama(), tiny_parallel(), tiny_windowed(), tiny_mixture()};
  const Strategy bases[] = {f32_strategy(), bf16_strategy()};
  const RecomputePolicy::Kind policies[] = {RecomputePolicy::Kind::none, RecomputePolicy::Kind::attention,
                                            RecomputePolicy::Kind::block};
  for (std::size_t f = 0; f < std::size(families); ++f) {
    const auto model = make_decoder(families[f]);
    const Batch batch = language_batch(4, 11, 3);
    for (std::size_t b = 0; b < std::size(bases); ++b) {
      for (const std::size_t cut : {0, 1}) {
        for (std::size_t p = 0; p < std::size(policies); ++p) {
          if (!is_tried({f, b, cut, p})) continue;
          Strategy strategy = bases[b];
          strategy.microbatches = cut == 1 ? 4 : 1;
          strategy.recompute.kind = policies[p];
          TinyJob job(*model, 4, strategy, cpu());
          job.begin();
          job.set_batch(batch);
          for (const char* schedule : {"train", "evaluate", "snapshot"}) expect_planned(job, schedule, 2);
        }
      }
    }
  }
}

TEST(CpuIsReference, losses_and_gradients) {
  for (const bool dropout : {false, true}) {
    for (DecoderSpec config : {tiny_gpt(), tiny_llama(), tiny_parallel(), tiny_windowed(), tiny_mixture()}) {
      config.dropout = dropout ? 0.2 : 0;
      const auto model = make_decoder(config);
      const Batch batch = language_batch(4, 11, 8);
      for (const Strategy& strategy : {f32_strategy(), bf16_strategy()}) {
        TinyJob fast(*model, 4, strategy, cpu(), dropout), slow(*model, 4, strategy, make_reference_device(), dropout);
        expect_same_step(fast, slow, batch, strategy);
      }
    }
  }
}

TEST(CpuIsReference, the_same_bits_at_every_run) {
  for (const DecoderSpec& config : {tiny_gpt(), tiny_mixture()}) {
    const auto model = make_decoder(config);
    const Batch batch = language_batch(4, 11, 8);
    std::vector<std::vector<std::vector<double>>> outcomes;
    for (int i = 0; i < 2; ++i) {
      TinyJob job(*model, 4, bf16_strategy(), cpu());
      job.begin();
      job.set_batch(batch);
      for (int step = 0; step < 5; ++step) job.step();
      outcomes.push_back(job.parameters());
    }
    EXPECT_EQ(outcomes[0], outcomes[1]);
  }
}

}  // namespace
}  // namespace systole::laws
#endif
