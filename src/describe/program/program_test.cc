// The planners and the verifier of Programs, on hand-written programs.
#include "describe/program/program.h"

#include <gtest/gtest.h>

#include "describe/ops/ops.h"
#include "describe/partition/builder.h"
#include "describe/program/live.h"
#include "describe/program/memory.h"

namespace systole {
namespace {

const Type kVector(DType::f32, {16}, {"n"});

Target small_target() {
  Target target;
  target.name = target.kind = "test";
  return target;
}

TEST(PlaceBlocks, disjoint_lives_share_and_overlapping_do_not) {
  std::vector<Block> blocks{{Bytes(100), {{0, 1}}}, {Bytes(100), {{2, 3}}}, {Bytes(50), {{1, 2}}}};
  const Bytes end = place_blocks(blocks, 64);
  EXPECT_EQ(blocks[0].offset, blocks[1].offset);
  EXPECT_NE(blocks[2].offset, blocks[0].offset);
  EXPECT_EQ(end.count(), 128 + 64);
}

// state' = f(state), and a function that reads state.
ProgramBuilder builder_with_update(bool late_reader_in_function) {
  ProgramBuilder b("p", Mesh(), small_target(), nullptr);
  b.add_value({"state", kVector, Residence::state});
  b.add_value({"seen", kVector, Residence::output});
  Graph update("update");
  const Value s = update.input("state", kVector);
  const Value next = exp(s);
  update.output("state", next);
  update.output("seen", late_reader_in_function ? mul(s, next) : tanh(next));
  b.add_function("update", std::move(update), {}, {});
  return b;
}

TEST(VerifyProgram, an_alias_with_a_late_reader_is_refused) {
  ProgramBuilder fine = builder_with_update(false);
  fine.add_schedule({"train", {{0, 0, 0, Stream::compute, {}}}});
  EXPECT_NO_THROW(fine.finish());
  ProgramBuilder late = builder_with_update(true);
  late.add_schedule({"train", {{0, 0, 0, Stream::compute, {}}}});
  try {
    late.finish();
    FAIL() << "the late reader was not seen";
  } catch (const Failure& f) {
    EXPECT_NE(f.error().message.find("reads input 'state' after"), std::string::npos) << f.what();
  }
}

TEST(VerifyProgram, a_reader_on_another_stream_must_wait) {
  for (const bool waits : {false, true}) {
    ProgramBuilder b = builder_with_update(false);
    b.add_value({"copy", kVector, Residence::staging});
    Graph snapshot("snapshot");
    snapshot.output("copy", copy(snapshot.input("state", kVector)));
    b.add_function("snapshot", std::move(snapshot), {}, {});
    std::vector<int> on;
    if (waits) on.push_back(0);
    b.add_schedule({"train", {{0, 0, 0, Stream::compute, {}}, {1, 0, 0, Stream::host, on}}});
    if (waits) {
      EXPECT_NO_THROW(b.finish());
    } else {
      EXPECT_THROW(b.finish(), Failure);
    }
  }
}

TEST(VerifyProgram, a_residual_slot_in_use_is_not_overwritten) {
  for (const int slots : {1, 2}) {
    ProgramBuilder b("p", Mesh(), small_target(), nullptr);
    b.add_value({"x", kVector, Residence::input, 2});
    b.add_value({"r", kVector, Residence::residual, slots});
    b.add_value({"y", kVector, Residence::output, 2});
    Graph forward("forward"), backward("backward");
    forward.output("r", exp(forward.input("x", kVector)));
    backward.output("y", tanh(backward.input("r", kVector)));
    b.add_function("forward", std::move(forward), {{"x", {"x", true}}}, {{"r", {"r", true}}});
    b.add_function("backward", std::move(backward), {{"r", {"r", true}}}, {{"y", {"y", true}}}, {"r"});
    // Both forwards run before the first backward: two microbatches in flight.
    b.add_schedule({"train",
                    {{0, 0, 0, Stream::compute, {}},
                     {0, 0, 1, Stream::compute, {}},
                     {1, 0, 0, Stream::compute, {}},
                     {1, 0, 1, Stream::compute, {}}}});
    if (slots == 2) {
      EXPECT_NO_THROW(b.finish());
    } else {
      EXPECT_THROW(b.finish(), Failure);
    }
  }
}

TEST(PlanScratch, chains_and_dying_operands_take_no_new_place) {
  ProgramBuilder b("p", Mesh(), small_target(), nullptr);
  b.add_value({"x", kVector, Residence::input});
  b.add_value({"y", kVector, Residence::output});
  Graph f("f");
  Value v = f.input("x", kVector);
  for (int i = 0; i < 6; ++i) v = tanh(v);
  f.output("y", v);
  b.add_function("f", std::move(f), {}, {});
  b.add_schedule({"run", {{0, 0, 0, Stream::compute, {}}}});
  const Program program = b.finish();
  EXPECT_EQ(program.functions[0].scratch.count(), 64);  // one place for five values
  EXPECT_EQ(live_bytes(program.functions[0]), (std::vector<std::int64_t>{64, 64, 64, 64, 64, 0}));
}

TEST(PlanScratch, live_bytes_count_what_lies_there_at_one_time) {
  Graph f("f");
  const Value x = f.input("x", kVector), kept = tanh(x), moved = exp(kept);
  const std::vector<int> all{0};
  const Value half = reduce_sum(moved, all);
  f.output("y", add(reduce_sum(mul(moved, kept), all), half));
  const std::int64_t vector = kVector.bytes().count(), scalar = half.type().bytes().count();
  Function function;
  function.graph = std::move(f);
  EXPECT_EQ(live_bytes(function), (std::vector<std::int64_t>{vector, 2 * vector, 2 * vector + scalar, vector + scalar,
                                                             vector + 2 * scalar, 0}));
  function.donated = {true};  // values that may take its place are not counted
  EXPECT_EQ(live_bytes(function)[0], 0);
}

TEST(Program, hash_follows_what_is_computed) {
  const auto make = [](const char* name, bool more) {
    ProgramBuilder b(name, Mesh(), small_target(), nullptr);
    b.add_value({"x", kVector, Residence::input});
    b.add_value({"y", kVector, Residence::output});
    Graph f("f");
    const Value x = f.input("x", kVector);
    f.output("y", more ? exp(tanh(x)) : exp(x));
    b.add_function("f", std::move(f), {}, {});
    b.add_schedule({"run", {{0, 0, 0, Stream::compute, {}}}});
    return hash_of(b.finish());
  };
  EXPECT_EQ(make("p", true), make("p", true));
  EXPECT_NE(make("p", true), make("p", false));
}

}  // namespace
}  // namespace systole
