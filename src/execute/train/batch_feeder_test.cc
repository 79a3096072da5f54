#include "execute/train/batch_feeder.h"

#include <gtest/gtest.h>

#include "describe/ops/ops.h"
#include "describe/partition/builder.h"
#include "describe/spec/testing/small_workload.h"
#include "execute/backends/reference/reference.h"
#include "execute/train/training_job.h"

namespace systole {
namespace {

// A stage ignores inputs of other stages, but must have its own.
TEST(BatchFeeder, a_stage_misses_what_it_takes) {
  WorkloadOptions options;
  options.sets = {"mesh={pipe: 2}", "train.precision=f32", "train.microbatches=2"};
  const std::unique_ptr<Device> device = make_reference_device();
  const Job job = make_job(read(kSmall, options), *device).value();
  const std::unique_ptr<Executor> executor = Executor::prepare(*job.program, *device).value();
  const std::vector<std::int32_t> rows(4 * 32, 1);
  StepBatch batch;
  batch.rows = 4;
  for (const std::string_view name : {"tokenz", "labels"})
    batch.inputs.push_back({name, std::as_bytes(std::span(rows)), 32 * 4});
  const Status done = BatchFeeder(*executor, "").put(batch, 0);
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().message, "the program 'small' takes 'tokens', and a batch has tokenz, labels");
}

// In exact training steps of shorter rows have other rows in as many logical shards.
TEST(BatchFeeder, a_logical_shard_of_short_rows_has_more_of_them) {
  WorkloadOptions options;
  options.sets = {"train.exact=true", "train.logical_shards=2", "train.precision=f32", "data.buckets=[16]"};
  const std::unique_ptr<Device> device = make_reference_device();
  const Job job = make_job(read(kSmall, options), *device).value();
  const StepRows& shorter = job.shapes.front();
  ASSERT_EQ(shorter.rows, 8);
  const std::unique_ptr<Executor> executor = Executor::create(*job.program, *device).value();
  std::vector<std::int32_t> rows(8 * 16);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::int32_t>(i / 16);
  StepBatch batch;
  batch.rows = 8;
  for (const std::string_view name : {"tokens", "labels", "segments", "positions"})
    batch.inputs.push_back({name, std::as_bytes(std::span(rows)), 16 * 4});
  BatchFeeder feeder(*executor, shorter.prefix);
  ASSERT_TRUE(feeder.put(batch, 0).ok());
  for (const int shard : {0, 1}) {
    std::vector<std::int32_t> seen(4 * 16);
    const int value = job.program->value_named(shorter.prefix + "tokens");
    ASSERT_TRUE(executor->read(value, shard, std::as_writable_bytes(std::span(seen))).ok());
    EXPECT_TRUE(std::equal(seen.begin(), seen.end(), rows.begin() + shard * 4 * 16)) << shard;
  }
}

// Rows of 8 tokens on two devices: each gets a chunk from both ends; rows beyond the batch are empty.
TEST(BatchFeeder, tokens_come_in_zigzag_order) {
  const Mesh mesh = Mesh::parse("context=2").value();
  const std::unique_ptr<Device> device = make_reference_device();
  const Type whole(DType::i32, {3, 8}, {"batch", "seq"});
  const Layout layout{{1}};
  const Type local = local_type(whole, layout, mesh);
  ProgramBuilder builder("p", mesh, device->target(), nullptr);
  for (const auto& [name, residence] : {std::pair("tokens", Residence::input), std::pair("labels", Residence::input),
                                        std::pair("out", Residence::output)}) {
    ProgramValue value{name, local, residence};
    value.cut = CutValue{whole, layout};
    builder.add_value(value);
  }
  Graph graph("f");
  graph.output("out", add(graph.input("tokens", local), graph.input("labels", local)));
  const int f = builder.add_function("f", std::move(graph), {}, {});
  builder.add_schedule({"train", {{f, 0, 0, Stream::compute, {}}}});
  const Program program = builder.finish();
  std::vector<std::int32_t> tokens(16), labels(16);
  for (std::int32_t i = 0; i < 16; ++i)
    tokens[static_cast<std::size_t>(i)] = i, labels[static_cast<std::size_t>(i)] = 100 + i;
  StepBatch batch;
  batch.rows = 2;
  batch.inputs = {{"tokens", std::as_bytes(std::span(tokens)), 32}, {"labels", std::as_bytes(std::span(labels)), 32}};
  const std::vector<std::vector<std::int32_t>> places{{0, 1, 6, 7}, {2, 3, 4, 5}};
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    const std::unique_ptr<Executor> executor = Executor::create(program, *device).value();
    ASSERT_TRUE(BatchFeeder(*executor, "", rank).put(batch, 0).ok());
    for (const auto& [name, first, empty] : {std::tuple("tokens", 0, 0), std::tuple("labels", 100, -1)}) {
      std::vector<std::int32_t> want;
      for (std::int32_t row = 0; row < 3; ++row) {
        for (const std::int32_t place : places[static_cast<std::size_t>(rank)])
          want.push_back(row < 2 ? first + 8 * row + place : empty);
      }
      std::vector<std::int32_t> seen(12);
      ASSERT_TRUE(executor->read(program.value_named(name), 0, std::as_writable_bytes(std::span(seen))).ok());
      EXPECT_EQ(seen, want) << name << " of rank " << rank;
    }
  }
}

// Five rows in two microbatches of four rows, each row of two devices' in turn: what is filled, of training and of an
// evaluation that takes all rows at once.
TEST(BatchFeeder, tells_which_rows_are_filled) {
  const Mesh mesh = Mesh::parse("data=2").value();
  const std::unique_ptr<Device> device = make_reference_device();
  const Type whole(DType::f32, {4}, {"batch"});
  const Layout layout{{0}};
  const Type local = local_type(whole, layout, mesh);
  ProgramBuilder builder("p", mesh, device->target(), nullptr);
  for (const auto& [name, residence, slots] :
       {std::tuple("filled", Residence::input, 2), std::tuple("evaluate/filled", Residence::input, 1),
        std::tuple("out", Residence::output, 1)}) {
    ProgramValue value{name, local, residence};
    value.slots = slots;
    value.cut = CutValue{whole, layout};
    builder.add_value(value);
  }
  Graph graph("f");
  graph.output("out", add(graph.input("filled", local), graph.input("evaluate/filled", local)));
  const int f = builder.add_function("f", std::move(graph), {}, {});
  builder.add_schedule({"train", {{f, 0, 0, Stream::compute, {}}}});
  const Program program = builder.finish();
  StepBatch batch;
  for (const auto& [rank, prefix, rows, slot, want] :
       {std::tuple(0, "", 5, 0, std::vector<float>{1, 1}), std::tuple(0, "", 5, 1, std::vector<float>{1, 0}),
        std::tuple(1, "", 5, 0, std::vector<float>{1, 1}), std::tuple(1, "", 5, 1, std::vector<float>{0, 0}),
        std::tuple(0, "evaluate/", 3, 0, std::vector<float>{1, 1}),
        std::tuple(1, "evaluate/", 3, 0, std::vector<float>{1, 0})}) {
    const std::unique_ptr<Executor> executor = Executor::create(program, *device).value();
    batch.rows = rows;
    ASSERT_TRUE(BatchFeeder(*executor, prefix, rank).put(batch, 0).ok());
    std::vector<float> seen(2);
    const int value = program.value_named(prefix + std::string(kFilled));
    ASSERT_TRUE(executor->read(value, slot, std::as_writable_bytes(std::span(seen))).ok());
    EXPECT_EQ(seen, want) << prefix << " slot " << slot << " of rank " << rank;
  }
}

}  // namespace
}  // namespace systole
