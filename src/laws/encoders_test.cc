// The laws on encoders: a bert and a t5 as Programs. Counted work equals planned work, on the reference and on the cpu;
// the cpu's results equal the reference's; microbatches sum to the batch; a recompute policy changes no bit.

#include <gtest/gtest.h>

#include <cmath>

#include "describe/models/bert/bert.h"
#include "describe/models/t5/t5.h"
#include "execute/backends/reference/reference.h"
#include "laws/tiny_laws.h"
#ifdef SYSTOLE_HAS_CPU
#include "execute/backends/cpu/cpu.h"
#endif

namespace systole::laws {
namespace {

std::unique_ptr<const Model> tiny_bert(double dropout = 0) {
  BertSpec config;
  config.layers = 2;
  config.width = 8;
  config.heads = 2;
  config.vocabulary = 11;
  config.context = kSequenceLength;
  config.dropout = dropout;
  return make_bert(config);
}

std::unique_ptr<const Model> tiny_t5(bool gated, double dropout = 0) {
  T5Spec config;
  config.layers = 2;
  config.width = 8;
  config.heads = 2;
  config.head = 3;
  config.vocabulary = 11;
  config.context = kSequenceLength;
  config.target_context = 5;
  config.relative_buckets = 8;
  config.relative_furthest = 5;
  config.gated = gated;
  config.tied = !gated;
  config.dropout = dropout;
  return make_t5(config);
}

Batch batch_of(const Model& model) {
  Batch batch = language_batch(4, 11, 3);
  if (model.task() == Task::masked) {
    batch["types"] = HostTensor(DType::i32, {4, kSequenceLength});
    for (std::int64_t i = 0; i < batch["types"].size(); ++i) batch["types"].set(i, static_cast<double>(i % 2));
    return batch;
  }
  batch.erase("positions");
  for (const char* name : {"target_tokens", "target_segments", "labels"}) batch[name] = HostTensor(DType::i32, {4, 5});
  for (std::int64_t i = 0; i < 20; ++i) {
    const bool there = i % 5 < 3 + i / 5 % 3;  // targets of 3 to 5 tokens
    batch["target_tokens"].set(i, i % 5 == 0 ? 0 : static_cast<double>((3 * i + 2) % 11));
    batch["target_segments"].set(i, there ? 1 : 0);
    batch["labels"].set(i, there ? static_cast<double>((3 * i + 5) % 11) : -1);
  }
  return batch;
}

std::vector<std::unique_ptr<const Model>> models(double dropout = 0) {
  std::vector<std::unique_ptr<const Model>> all;
  all.push_back(tiny_bert(dropout));
  all.push_back(tiny_t5(false, dropout));
  all.push_back(tiny_t5(true, dropout));
  return all;
}

using MakeDevice = std::unique_ptr<Device> (*)();

std::unique_ptr<Device> reference() { return make_reference_device(); }

std::vector<MakeDevice> devices() {
  std::vector<MakeDevice> all{reference};
#ifdef SYSTOLE_HAS_CPU
  all.push_back([] { return make_cpu_device({.threads = 2}).value(); });
#endif
  return all;
}

TEST(PlanIsRunEncoders, under_every_precision_policy_and_microbatching) {
  const auto all_devices = devices();
  const auto families = models();
  const Strategy bases[] = {f32_strategy(), bf16_strategy()};
  const RecomputePolicy::Kind policies[] = {RecomputePolicy::Kind::none, RecomputePolicy::Kind::block};
  for (std::size_t d = 0; d < all_devices.size(); ++d) {
    for (std::size_t f = 0; f < families.size(); ++f) {
      for (std::size_t b = 0; b < std::size(bases); ++b) {
        for (const std::size_t cut : {0, 1}) {
          for (std::size_t p = 0; p < std::size(policies); ++p) {
            if (!is_tried({d, f, b, cut, p})) continue;
            Strategy strategy = bases[b];
            strategy.microbatches = cut == 1 ? 4 : 1;
            strategy.recompute.kind = policies[p];
            TinyJob job(*families[f], 4, strategy, all_devices[d]());
            job.begin();
            job.set_batch(batch_of(*families[f]));
            for (const char* schedule : {"train", "evaluate", "snapshot"}) expect_planned(job, schedule);
          }
        }
      }
    }
  }
}

TEST(OneResultEncoders, microbatches_and_policies_change_nothing) {
  for (const auto& model : models(0.2)) {
    std::vector<std::vector<std::vector<double>>> gradients;
    std::vector<double> losses;
    for (const int microbatches : {1, 2, 4}) {
      for (const auto policy : {RecomputePolicy::Kind::none, RecomputePolicy::Kind::attention}) {
        Strategy strategy = exact_strategy();
        strategy.microbatches = microbatches;
        strategy.recompute.kind = policy;
        TinyJob job(*model, 4, strategy, reference(), true);
        job.begin();
        job.set_batch(batch_of(*model));
        job.step();
        gradients.push_back(job.gradients());
        losses.push_back(job.loss());
      }
    }
    for (std::size_t i = 1; i < losses.size(); ++i) {
      EXPECT_NEAR(losses[i], losses[0], 1e-11 * std::abs(losses[0]));
      for (std::size_t p = 0; p < gradients[i].size(); ++p) {
        for (std::size_t k = 0; k < gradients[i][p].size(); ++k)
          EXPECT_NEAR(gradients[i][p][k], gradients[0][p][k], 1e-10) << "tensor " << p;
      }
    }
    EXPECT_EQ(gradients[0], gradients[1]);  // bit by bit
  }
}

#ifdef SYSTOLE_HAS_CPU
TEST(CpuIsReferenceEncoders, losses_and_gradients) {
  for (const auto& model : models()) {
    for (const Strategy& strategy : {f32_strategy(), bf16_strategy()}) {
      TinyJob fast(*model, 4, strategy, devices()[1]()), slow(*model, 4, strategy, reference());
      expect_same_step(fast, slow, batch_of(*model), strategy);
    }
  }
}
#endif

}  // namespace
}  // namespace systole::laws
