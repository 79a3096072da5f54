// Programs of pipeline stages: each passes verification, and together they hold the whole model.

#include <gtest/gtest.h>

#include <map>

#include "describe/ir/layer_names.h"
#include "describe/models/decoder/testing/tiny_decoder.h"
#include "describe/partition/fused_step.h"
#include "describe/partition/training.h"
#include "describe/program/collectives_of.h"

namespace systole {
namespace {

Program stage(const Graph& loss, const std::string& mesh, const PipelineStrategy& pipeline, int microbatches,
              std::int64_t device) {
  Strategy strategy;
  strategy.microbatches = microbatches;
  strategy.precision = {DType::f32, DType::bf16, DType::f32, DType::f32};
  strategy.optimizer.clip = 1;
  strategy.pipeline = pipeline;
  return training_program("p", loss, std::nullopt, Mesh::parse(mesh).value(), strategy, Target(), nullptr, device);
}

Graph four_layers() {
  DecoderSpec config = tiny_decoder();
  config.layers = 4;
  config.heads = 2;
  config.dropout = 0.25;
  return make_decoder(config)->loss({4, 8}, true);
}

// training_program verifies its result: slots for microbatches in flight, waits between streams, offsets.
TEST(PipelineProgram, stages_verify_and_share) {
  const Graph loss = four_layers();
  for (const char* mesh : {"pipe=2", "pipe=4", "pipe=2 data=2", "data=2 pipe=2", "pipe=2 fsdp=2 model=2"}) {
    for (const auto kind : {PipelineStrategy::Kind::gpipe, PipelineStrategy::Kind::one_f_one_b}) {
      for (const int chunks : {1, 2}) {
        const Mesh axes = Mesh::parse(mesh).value();
        const std::size_t pipe = axes.find("pipe").value();
        if (axes.axes()[pipe].size * chunks > 4) continue;
        std::map<std::int64_t, std::string> hashes;  // by stage
        std::map<std::int64_t, int> seen;
        for (std::int64_t device = 0; device < axes.num_devices(); ++device) {
          SCOPED_TRACE(fmt::format("{} {} {} device {}", mesh, name_of(kind), chunks, device));
          if (++seen[axes.coordinates(device)[pipe]] > 2) continue;  // two show whether devices of a stage are alike
          const Program program = stage(loss, mesh, {.chunks_per_stage = chunks, .kind = kind}, 8, device);
          const std::string hash = hash_of(program);
          EXPECT_EQ(hashes.try_emplace(axes.coordinates(device)[pipe], hash).first->second, hash);
        }
        EXPECT_EQ(static_cast<std::int64_t>(hashes.size()), axes.axes()[pipe].size);
      }
    }
  }
}

// A stage holds only its own layers. Over all stages each parameter occurs once, a tied one twice.
TEST(PipelineProgram, stages_are_the_whole) {
  const Graph loss = four_layers();
  std::map<std::string, int> found;  // elements by the parameter's own name
  for (std::int64_t device = 0; device < 4; ++device) {
    for (const ProgramValue& value : stage(loss, "pipe=4", {}, 4, device).values) {
      if (value.residence != Residence::parameter) continue;
      const auto layers = layer_name(value.name);
      EXPECT_EQ(layers.has_value() && layers->first != device, false) << value.name;
      found[layers ? layers->from(0) : value.name] += static_cast<int>(value.type.num_elements());
    }
  }
  int parameters = 0;
  for (const GraphInput& input : loss.inputs()) {
    if (!input.parameter) continue;
    ++parameters;
    const int times = input.name == "embed.tokens" ? 2 : 1;
    EXPECT_EQ(found[input.name], times * loss.type(input.value).num_elements()) << input.name;
  }
  EXPECT_GT(parameters, 0);
}

// With 1F1B the first stage holds as many microbatches as there are stages, the last one; with GPipe each holds all.
TEST(PipelineProgram, holds_what_is_in_flight) {
  const Graph loss = four_layers();
  const auto slots = [&](PipelineStrategy::Kind kind, std::int64_t device) {
    for (const ProgramValue& value : stage(loss, "pipe=4", {.kind = kind}, 8, device).values) {
      if (value.name.starts_with("residual.")) return value.slots;
    }
    return 0;
  };
  using Kind = PipelineStrategy::Kind;
  EXPECT_EQ(slots(Kind::one_f_one_b, 0), 4);
  EXPECT_EQ(slots(Kind::one_f_one_b, 3), 1);
  EXPECT_EQ(slots(Kind::gpipe, 0), 8);
  EXPECT_EQ(slots(Kind::gpipe, 3), 8);
}

template <typename Fn>
std::string refusal(Fn&& fn) {
  try {
    fn();
  } catch (const Failure& failure) { return failure.error().message; }
  return "";
}

// Per microbatch: activations to the next stage and gradients back, in the compute type. The tied gradient: once.
TEST(PipelineProgram, bytes_sent) {
  const Graph loss = four_layers();
  const std::int64_t between = 4 * 8 * 12 * 2, tie = 11 * 12 * 4, sums = 2 * 4;
  for (const std::int64_t device : {0, 1}) {
    const Program program = stage(loss, "pipe=2", {}, 8, device);
    EXPECT_EQ(bytes_sent(program, program.schedule_named("train"), device).count(), 8 * between + tie + sums);
  }
}

TEST(PipelineProgram, refusals) {
  const Graph loss = four_layers();
  EXPECT_EQ(refusal([&] { stage(loss, "pipe=8", {}, 8, 0); }),
            "4 layers do not fill 8 chunks of a pipeline (8 stages of 1)");
  for (const std::int64_t device : {0, 1}) {
    EXPECT_EQ(refusal([&] { fused_step(stage(loss, "pipe=2", {}, 2, device)); }),
              "the schedule 'train' of 'p' is of a stage of a pipeline: it is not one function");
  }
}

}  // namespace
}  // namespace systole
