#include "execute/train/feed.h"

#include <gtest/gtest.h>

#include "describe/graph/ops/ops.h"
#include "describe/graph/partition/builder.h"
#include "describe/spec/testing/small_workload.h"
#include "execute/backends/reference/reference.h"
#include "execute/train/job.h"

namespace systole {
namespace {

// What a stage of a pipeline does not take may be another's; what it takes must be there.
TEST(Feed, a_stage_misses_what_it_takes) {
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
  const Status done = Feed(*executor, "").put(batch, 0);
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().message, "the program 'small' takes 'tokens', and a batch has tokenz, labels");
}

// Of rows of 8 tokens over two devices each has a chunk from both ends; rows that the batch lacks are empty.
TEST(Feed, tokens_come_in_zigzag_order) {
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
    ASSERT_TRUE(Feed(*executor, "", rank).put(batch, 0).ok());
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

}  // namespace
}  // namespace systole
