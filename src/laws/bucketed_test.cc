// Steps of several row lengths in one Program. bucketed-is-padded: the loss sum and the gradients of rows in their
// length equal those of the same rows padded to the model's context, in f64. plan-is-run holds for each length, and
// fit-is-proved for the one arena, which is that of the largest.

#include <gtest/gtest.h>

#include "describe/models/bert/bert.h"
#include "execute/backends/reference/reference.h"
#include "laws/tiny_laws.h"
#include "laws/tiny_mesh.h"
#ifdef SYSTOLE_HAS_CPU
#include "execute/backends/cpu/cpu.h"
#endif

namespace systole::laws {
namespace {

constexpr std::int64_t kShort = 3, kRows = 4, kShortRows = kRows * (kSequenceLength / kShort);

// The rows with padding up to `length`.
Batch padded(const Batch& rows, std::int64_t length) {
  Batch wide;
  for (const auto& [name, tensor] : rows) {
    const std::int64_t count = tensor.shape()[0], from = tensor.shape()[1];
    HostTensor& to = wide[name] = HostTensor(tensor.dtype(), {count, length});
    for (std::int64_t i = 0; i < to.size(); ++i) {
      const std::int64_t row = i / length, at = i % length;
      to.set(i, at < from ? tensor.at(row * from + at) : name == "labels" ? -1 : 0);
    }
  }
  return wide;
}

Batch short_rows(const Model& model) {
  Batch batch = language_batch(kShortRows, model.vocabulary(), 5, kShort);
  if (model.task() == Task::masked) batch["types"] = HostTensor(DType::i32, {kShortRows, kShort});
  return batch;
}

std::vector<std::unique_ptr<const Model>> families() {
  std::vector<std::unique_ptr<const Model>> models;
  for (const DecoderSpec& spec : {tiny_gpt(), tiny_llama(), tiny_parallel(), tiny_windowed()})
    models.push_back(make_decoder(spec));
  // Experts with a capacity that tokens exceed, of a row and of a group of tokens; and with one for every token.
  for (const auto& [factor, group] : {std::pair(0.5, 0), std::pair(0.7, 3), std::pair(9.0, 0)}) {
    DecoderSpec mixture = tiny_mixture();
    mixture.moe.capacity_factor = factor;
    mixture.moe.group = group;
    mixture.moe.balance = 0.5;
    models.push_back(make_decoder(mixture));
  }
  BertSpec bert;
  bert.layers = bert.heads = 2;
  bert.width = 8;
  bert.vocabulary = 11;
  bert.context = kSequenceLength;
  models.push_back(make_bert(bert));
  return models;
}

TinyRank of_lengths() { return {.mesh = {}, .lengths = {kShort}}; }

TEST(BucketedIsPadded, loss_and_gradients_of_the_same_rows) {
  const std::string train = train_schedule(kShort), prefix = shape_prefix(kShort);
  for (const auto& model : families()) {
    for (const auto& [microbatches, shards] : {std::pair(1, 0), std::pair(2, 0), std::pair(2, 2)}) {
      SCOPED_TRACE(fmt::format("{}, {} microbatches, {} logical shards", model->family(), microbatches, shards));
      Strategy strategy = exact_strategy();
      strategy.microbatches = microbatches;
      strategy.logical_shards = shards;
      TinyJob bucketed(*model, kRows, strategy, make_reference_device(), false, of_lengths());
      TinyJob wide(*model, kShortRows, strategy, make_reference_device());
      const Batch rows = short_rows(*model);
      bucketed.begin();
      bucketed.set_batch(rows, prefix);
      bucketed.step(1e-2, train);
      wide.begin();
      wide.set_batch(padded(rows, kSequenceLength));
      wide.step();
      const double tolerance = 32 * epsilon_of(DType::f64);
      EXPECT_GT(wide.loss(), 1);
      EXPECT_NEAR(bucketed.loss(), wide.loss(), tolerance * wide.loss());
      for (const char* count : {kExpertChoices, kDroppedChoices})
        if (wide.program().find_value(count)) { EXPECT_EQ(bucketed.sum(count), wide.sum(count)) << count; }
      expect_same_gradients(bucketed, wide, tolerance);
    }
  }
}

// Steps of both lengths alternate, on one state.
void expect_planned_and_fitting(TinyJob& job, const Program& alone) {
  const Program& program = job.program();
  const std::string train = train_schedule(kShort), prefix = shape_prefix(kShort);
  job.begin();
  for (int step = 0; step < 2; ++step) {
    job.set_batch(language_batch(kRows, 11, 3));
    expect_planned(job, "train");
    job.set_batch(language_batch(kShortRows, 11, 4, kShort), prefix);
    expect_planned(job, train.c_str());
    EXPECT_GT(job.loss(), 1);
  }
  for (const char* schedule : {"evaluate", "snapshot"}) expect_planned(job, schedule);
  std::int64_t high_water = 0;
  for (const WorkCounters& counters : job.executor().counters()) high_water = std::max(high_water, counters.high_water);
  const std::int64_t alignment = program.target.alignment;
  EXPECT_EQ((high_water + alignment - 1) / alignment * alignment, program.arena.count());
  EXPECT_EQ(job.executor().arena(), program.arena);
  // Within the alignment of its few blocks, that of the largest shape.
  EXPECT_LE(program.arena.count(), alone.arena.count() + 8 * alignment);
}

TEST(BucketedIsPadded, every_length_does_what_is_planned_in_one_arena) {
  for (const auto& [spec, microbatches] : {std::pair(tiny_gpt(), 1), std::pair(tiny_llama(), 2)}) {
    const auto model = make_decoder(spec);
    Strategy strategy = f32_strategy();
    strategy.microbatches = microbatches;
    SCOPED_TRACE(fmt::format("{}", model->family()));
    {
      TinyJob job(*model, kRows, strategy, make_reference_device(), false, of_lengths());
      const TinyJob alone(*model, kRows, strategy, make_reference_device());
      expect_planned_and_fitting(job, alone.program());
    }
#ifdef SYSTOLE_HAS_CPU
    TinyJob job(*model, kRows, strategy, make_cpu_device({.threads = 2}).value(), false, of_lengths());
    const TinyJob alone(*model, kRows, strategy, make_cpu_device({.threads = 2}).value());
    expect_planned_and_fitting(job, alone.program());
#endif
  }
}

// A device that takes a step as one program has one for each length.
TEST(BucketedIsPadded, fused_steps_compute_the_same_bits) {
  const std::string train = train_schedule(kShort), prefix = shape_prefix(kShort);
  const auto model = make_decoder(tiny_gpt());
  Strategy strategy = f32_strategy();
  strategy.microbatches = 2;
  TinyJob apart(*model, kRows, strategy, make_reference_device(), true, of_lengths());
  TinyJob fused(*model, kRows, strategy, make_reference_device(), true,
                {.mesh = {}, .joined = true, .lengths = {kShort}});
  EXPECT_EQ(fused.program().schedule_named(train).actions.size(), 1U);
  EXPECT_EQ(fused.program().function_named("step.3").name, "step.3");
  for (TinyJob* job : {&apart, &fused}) {
    job->begin();
    job->set_batch(language_batch(kShortRows, 11, 4, kShort), prefix);
    job->step(1e-2, train);
    job->set_batch(language_batch(kRows, 11, 3));
    job->step();
  }
  EXPECT_EQ(fused.loss(), apart.loss());
  EXPECT_EQ(fused.parameters(), apart.parameters());
}

// The short step on ranks gives the state of the short step on one device, dropout included.
TEST(BucketedIsPadded, ranks_do_the_step_of_one_device) {
  const std::string train = train_schedule(kShort), prefix = shape_prefix(kShort);
  const auto dense = make_decoder(divisible(tiny_gpt())), mixture = make_decoder(divisible_mixture());
  const Batch rows = language_batch(kShortRows, 12, 9, kShort);
  for (const auto& [axes, microbatches] :
       {std::pair("data=2", 1), std::pair("fsdp=2", 2), std::pair("model=2", 1), std::pair("expert=2", 1)}) {
    SCOPED_TRACE(axes);
    const auto& model = std::string_view(axes) == "expert=2" ? mixture : dense;
    Strategy strategy = exact_strategy();
    strategy.microbatches = microbatches;
    TinyJob one(*model, kRows, strategy, make_reference_device(), true, of_lengths());
    TinyMesh mesh(*model, kRows, strategy, Mesh::parse(axes).value(), true,
                  [](std::int64_t) { return make_reference_device(); }, false, {kShort});
    one.begin();
    one.set_batch(rows, prefix);
    one.step(1e-2, train);
    mesh.on_all([&](TinyJob& job) {
      job.begin();
      job.set_batch(rows, prefix);
      job.step(1e-2, train);
    });
    ASSERT_FALSE(HasFatalFailure());
    expect_planned(mesh, 1, train);
    EXPECT_NEAR(mesh.job(0).loss(), one.loss(), 1e-12 * one.loss());
    if (model == mixture) { EXPECT_EQ(mesh.job(0).sum(kDroppedChoices), one.sum(kDroppedChoices)); }
    for (const ProgramValue& value : one.program().values) {
      if (value.residence != Residence::parameter && value.residence != Residence::state) continue;
      EXPECT_LE(relative_difference(mesh.whole(value.name), one.tensor(value.name)), 1e-10) << value.name;
    }
  }
}

}  // namespace
}  // namespace systole::laws
