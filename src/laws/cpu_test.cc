// The cpu backend on whole Programs: what it counts is what was planned, and what it computes is what the reference
// computes.

#ifdef SYSTOLE_HAS_CPU
#include "execute/backends/cpu/cpu.h"

#include <gtest/gtest.h>

#include <cmath>

#include "execute/backends/reference/reference.h"
#include "laws/tiny_job.h"

namespace systole::laws {
namespace {

std::unique_ptr<Device> cpu() { return make_cpu_device({.threads = 2}).value(); }

void expect_planned(TinyJob& job, const char* schedule, int times) {
  const Schedule* s = job.program().find_schedule(schedule);
  ASSERT_NE(s, nullptr);
  std::vector<std::int64_t> calls(job.program().functions.size(), 0);
  for (const Action& action : s->actions) calls[static_cast<std::size_t>(action.function)] += times;
  const std::vector<WorkCounters> before = job.executor().counters();
  for (int i = 0; i < times; ++i) {
    if (std::string_view(schedule) == "train") {
      job.step();
    } else {
      job.executor().run(*s).value();
    }
  }
  for (std::size_t f = 0; f < calls.size(); ++f) {
    const Work planned = job.program().functions[f].work * calls[f];
    const WorkCounters &now = job.executor().counters()[f], &then = before[f];
    SCOPED_TRACE(job.program().functions[f].name);
    EXPECT_EQ(now.flops + now.skipped_flops - then.flops - then.skipped_flops, planned.flops);
    EXPECT_EQ(now.transcendentals + now.skipped_transcendentals - then.transcendentals - then.skipped_transcendentals,
              planned.transcendentals);
    EXPECT_EQ(now.bytes_read - then.bytes_read, planned.read.count());
    EXPECT_EQ(now.bytes_written - then.bytes_written, planned.written.count());
  }
}

TEST(PlanIsRunCpu, decoders_under_every_policy_precision_and_microbatching) {
  for (const DecoderConfig& config : {tiny_gpt(), tiny_llama(), tiny_parallel(), tiny_windowed()}) {
    const auto model = make_decoder(config);
    const Batch batch = language_batch(4, 11, 3);
    for (const Strategy& base : {f32_strategy(), bf16_strategy()}) {
      for (const int microbatches : {1, 4}) {
        for (const auto policy :
             {RecomputePolicy::Kind::none, RecomputePolicy::Kind::attention, RecomputePolicy::Kind::block}) {
          Strategy strategy = base;
          strategy.microbatches = microbatches;
          strategy.recompute.kind = policy;
          TinyJob job(*model, 4, strategy, cpu());
          job.begin();
          job.set_batch(batch);
          for (const char* schedule : {"train", "evaluate", "snapshot"}) expect_planned(job, schedule, 2);
        }
      }
    }
  }
}

// Losses and gradients agree within what rounding allows: eps of the compute type times the root of the longest sum.
TEST(CpuIsReference, losses_and_gradients) {
  for (const bool dropout : {false, true}) {
    for (DecoderConfig config : {tiny_gpt(), tiny_llama(), tiny_parallel(), tiny_windowed()}) {
      config.dropout = dropout ? 0.2 : 0;
      const auto model = make_decoder(config);
      const Batch batch = language_batch(4, 11, 8);
      for (const Strategy& strategy : {f32_strategy(), bf16_strategy()}) {
        TinyJob fast(*model, 4, strategy, cpu(), dropout), slow(*model, 4, strategy, make_reference_device(), dropout);
        for (TinyJob* job : {&fast, &slow}) {
          job->begin();
          job->set_batch(batch);
          job->step();
        }
        const double eps = epsilon_of(strategy.precision.compute), tolerance = 32 * eps;
        EXPECT_NEAR(fast.loss(), slow.loss(), tolerance * std::abs(slow.loss()));
        const auto a = fast.gradients(), b = slow.gradients();
        ASSERT_EQ(a.size(), b.size());
        for (std::size_t p = 0; p < a.size(); ++p) {
          double norm = 0, error = 0;
          for (std::size_t i = 0; i < a[p].size(); ++i) {
            norm += b[p][i] * b[p][i];
            error += (a[p][i] - b[p][i]) * (a[p][i] - b[p][i]);
          }
          EXPECT_LE(std::sqrt(error), tolerance * (std::sqrt(norm) + 0.1)) << "tensor " << p;
        }
      }
    }
  }
}

TEST(CpuIsReference, the_same_bits_at_every_run) {
  const auto model = make_decoder(tiny_gpt());
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

}  // namespace
}  // namespace systole::laws
#endif
