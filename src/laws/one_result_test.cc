// What must not change the numbers: microbatches, recomputation, how layers are written, packing of documents.

#include <gtest/gtest.h>

#include <cmath>

#include "execute/backends/reference/reference.h"
#include "laws/tiny_job.h"

namespace systole::laws {
namespace {

struct Outcome {
  double loss;
  std::vector<std::vector<double>> gradients, parameters;
  std::int64_t residuals = 0, moved = 0;  // bytes kept for backward; bytes read and written
};

Outcome outcome_of(TinyJob& job) {
  Outcome outcome{job.loss(), job.gradients(), job.parameters()};
  for (const ProgramValue& value : job.program().values) {
    if (value.residence == Residence::residual) outcome.residuals += value.slots * value.type.bytes().count();
  }
  for (const WorkCounters& counted : job.executor().counters())
    outcome.moved += counted.bytes_read + counted.bytes_written;
  return outcome;
}

Outcome run(const Model& model, const Strategy& strategy, const Batch& batch, std::int64_t rows, bool dropout = false) {
  TinyJob job(model, rows, strategy, make_reference_device(), dropout);
  job.begin();
  job.set_batch(batch);
  job.step();
  return outcome_of(job);
}

void expect_equal(const Outcome& a, const Outcome& b, double tolerance) {
  EXPECT_NEAR(a.loss, b.loss, tolerance * (1 + std::abs(a.loss)));
  ASSERT_EQ(a.parameters.size(), b.parameters.size());
  for (const auto& [x, y] : {std::pair(a.gradients, b.gradients), std::pair(a.parameters, b.parameters)}) {
    ASSERT_EQ(x.size(), y.size());
    for (std::size_t p = 0; p < x.size(); ++p) {
      for (std::size_t i = 0; i < x[p].size(); ++i)
        ASSERT_NEAR(x[p][i], y[p][i], tolerance * (1 + std::abs(x[p][i]))) << "tensor " << p << " element " << i;
    }
  }
}

TEST(OneResult, four_ragged_microbatches_are_one_batch) {
  const auto model = make_decoder(tiny_gpt());
  const Batch batch = language_batch(4, 11, 9);
  Strategy one = exact_strategy(), four = one;
  four.microbatches = 4;
  expect_equal(run(*model, one, batch, 4), run(*model, four, batch, 4), 1e-12);
}

TEST(OneResult, four_microbatches_drop_out_the_same_elements) {
  DecoderSpec config = tiny_gpt();
  config.dropout = 0.3;
  const auto model = make_decoder(config);
  const Batch batch = language_batch(4, 11, 9);
  Strategy one = exact_strategy(), four = one;
  four.microbatches = 4;
  expect_equal(run(*model, one, batch, 4, true), run(*model, four, batch, 4, true), 1e-12);
}

TEST(OneResult, recomputing_changes_no_bit) {
  DecoderSpec config = tiny_gpt();
  config.dropout = 0.2;
  const auto model = make_decoder(config);
  const Batch batch = language_batch(4, 11, 2);
  for (const Strategy& base : {exact_strategy(), bf16_strategy()}) {
    const Outcome kept = run(*model, base, batch, 4, true);
    for (const auto kind :
         {RecomputePolicy::Kind::attention, RecomputePolicy::Kind::block, RecomputePolicy::Kind::named}) {
      Strategy strategy = base;
      strategy.recompute = {kind, {"attn.q", "mlp.hidden"}};
      const Outcome recomputed = run(*model, strategy, batch, 4, true);
      expect_equal(kept, recomputed, 0);
      EXPECT_LT(recomputed.residuals, kept.residuals) << "it keeps less, or the policy was ignored";
    }
  }
}

TEST(OneResult, unrolled_is_rolled) {
  const DecoderSpec config = tiny_gpt();
  const auto rolled = make_decoder(config), unrolled = make_decoder(config, true);
  const Batch batch = language_batch(4, 11, 5);
  expect_equal(run(*rolled, exact_strategy(), batch, 4), run(*unrolled, exact_strategy(), batch, 4), 1e-12);
}

TEST(OneResult, chains_change_no_bit) {
  const auto model = make_decoder(tiny_gpt());
  const Batch batch = language_batch(4, 11, 5);
  for (const Strategy& strategy : {exact_strategy(), f32_strategy(), bf16_strategy()}) {
    Outcome outcomes[2];
    for (const bool chains : {false, true}) {
      TinyJob job(*model, 4, strategy, make_reference_device(chains));
      job.begin();
      job.set_batch(batch);
      job.step();
      outcomes[chains] = outcome_of(job);
    }
    expect_equal(outcomes[0], outcomes[1], 0);
    EXPECT_LT(outcomes[1].moved, outcomes[0].moved) << "what lies between the ops of a chain is not stored";
  }
}

// Compares the gradient of the Program's backward function with finite differences of its forward function.
TEST(Gradients, of_the_whole_program_are_the_finite_differences) {
  DecoderSpec tied = tiny_gpt();
  tied.dropout = 0.1;
  for (const DecoderSpec& config : {tied, tiny_llama(), tiny_parallel(), tiny_windowed(), tiny_mixture()}) {
    const auto model = make_decoder(config);
    const Batch batch = language_batch(2, 11, 4);
    Strategy strategy = exact_strategy();
    strategy.snapshot = false;
    TinyJob job(*model, 2, strategy, make_reference_device(), config.dropout > 0);
    job.begin();
    job.set_batch(batch);
    job.step(0);
    const auto gradients = job.gradients();
    std::size_t p = 0;
    for (const ProgramValue& value : job.program().values) {
      if (value.residence != Residence::parameter) continue;
      const std::vector<double> at = job.get(value.name);
      std::vector<double> direction(at.size());
      double slope = 0;
      for (std::size_t i = 0; i < at.size(); ++i) {
        direction[i] = std::sin(1.7 * static_cast<double>(i) + static_cast<double>(p));
        slope += direction[i] * gradients[p][i];
      }
      const double h = 1e-5;
      double losses[2];
      for (const int sign : {0, 1}) {
        std::vector<double> moved = at;
        for (std::size_t i = 0; i < at.size(); ++i) moved[i] += (sign == 0 ? -h : h) * direction[i];
        job.put(value.name, moved);
        job.step(0);
        losses[sign] = job.loss();
      }
      job.put(value.name, at);
      const double measured = (losses[1] - losses[0]) / (2 * h);
      EXPECT_NEAR(slope, measured, 1e-6 * (1 + std::abs(slope))) << value.name;
      ++p;
    }
    EXPECT_EQ(p, gradients.size());
  }
}

TEST(Adapters, a_frozen_base_has_no_moments_and_no_gradient_flops) {
  DecoderSpec config = tiny_gpt();
  const auto whole = make_decoder(config);
  config.adapters.rank = 2;
  const auto adapted = make_decoder(config);
  const Batch batch = language_batch(4, 11, 7);
  TinyJob full(*whole, 4, f32_strategy(), make_reference_device()),
      lora(*adapted, 4, f32_strategy(), make_reference_device());
  for (TinyJob* job : {&full, &lora}) {
    job->begin();
    job->set_batch(batch);
    job->step();
  }
  for (const ProgramValue& value : lora.program().values) {
    const bool of_training = value.residence == Residence::state || value.residence == Residence::gradient;
    if (of_training && value.parameter) { EXPECT_TRUE(value.parameter->trainable) << value.name; }
  }
  const auto flops = [](TinyJob& job, const char* function) {
    for (std::size_t f = 0; f < job.program().functions.size(); ++f) {
      if (job.program().functions[f].name == function) return job.executor().counters()[f].flops;
    }
    return std::int64_t{0};
  };
  EXPECT_LT(flops(lora, "update"), flops(full, "update"));
  // Each weight gradient of the base is a contraction as large as its forward one. Without them backward does less than
  // twice the forward work; with them at least twice its contractions.
  EXPECT_LT(static_cast<double>(flops(lora, "backward")), 1.75 * static_cast<double>(flops(lora, "forward")));
  EXPECT_GT(static_cast<double>(flops(full, "backward")), 1.75 * static_cast<double>(flops(full, "forward")));
}

}  // namespace
}  // namespace systole::laws
