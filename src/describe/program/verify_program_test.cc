// Programs with one mistake each, which would run and give wrong numbers. Each is refused, and the error names the
// mistake.

#include <gtest/gtest.h>

#include "describe/ops/ops.h"
#include "describe/partition/builder.h"
#include "describe/program/memory.h"
#include "describe/program/order.h"
#include "ground/base/testing/processor_time.h"

namespace systole {
namespace {

const Type kVector(DType::f32, {16}, {"n"});

Target small_target() {
  Target target;
  target.name = target.kind = "test";
  return target;
}

Action act(int function, int microbatch = 0, Stream stream = Stream::compute, std::vector<int> waits = {}) {
  return {function, 0, microbatch, stream, std::move(waits)};
}

// Two microbatches: forward keeps x in r, backward sums into g, update moves p.
Program correct() {
  ProgramBuilder b("p", Mesh(), small_target(), nullptr);
  b.add_value({"x", kVector, Residence::input, 2});
  b.add_value({"p", kVector, Residence::state});
  b.add_value({"r", kVector, Residence::residual});
  b.add_value({"g", kVector, Residence::gradient});
  b.add_value({"y", kVector, Residence::output, 2});
  b.add_value({"q", kVector, Residence::output});
  Graph zero("zero"), forward("forward"), backward("backward"), update("update");
  zero.output("g", constant(zero, kVector, 0));
  const Value x = forward.input("x", kVector), p = forward.input("p", kVector);
  const Value r = mul(tanh(x), exp(x));
  forward.output("r", r);
  forward.output("y", add(r, p));
  const Value before = backward.input("g", kVector), kept = backward.input("r", kVector);
  backward.output("g", add(before, exp(kept)));
  const Value old = update.input("p", kVector), g = update.input("g", kVector);
  const Value next = sub(old, g);
  update.output("p", next);
  update.output("q", tanh(next));
  b.add_function("zero", std::move(zero), {}, {});
  b.add_function("forward", std::move(forward), {{"x", {"x", true}}}, {{"r", {"r", true}}, {"y", {"y", true}}});
  b.add_function("backward", std::move(backward), {{"r", {"r", true}}}, {}, {"r"});
  b.add_function("update", std::move(update), {}, {});
  b.add_schedule({"train", {act(0), act(1, 0), act(2, 0), act(1, 1), act(2, 1), act(3)}});
  return b.finish();
}

Function& function(Program& program, const char* name) {
  for (Function& f : program.functions) {
    if (f.name == name) return f;
  }
  throw std::out_of_range(name);
}
Port& input(Program& program, const char* f, const char* value) {
  for (Port& port : function(program, f).inputs) {
    if (port.value == program.value_named(value)) return port;
  }
  throw std::out_of_range(value);
}
std::size_t input_index(Program& program, const char* f, const char* value) {
  return static_cast<std::size_t>(&input(program, f, value) - function(program, f).inputs.data());
}
ProgramValue& value(Program& program, const char* name) {
  return program.values[static_cast<std::size_t>(program.value_named(name))];
}
std::vector<Action>& train(Program& program) { return program.schedules[0].actions; }

struct Defect {
  const char* name;
  void (*make)(Program&);
  const char* message;  // part of the refusal
};

const Defect kDefects[] = {
    {"donated_state_is_read_by_the_next_schedule",
     [](Program& p) {
       Function& f = function(p, "forward");
       f.donated[input_index(p, "forward", "p")] = true;
     },
     "which action 1 was given for good"},
    {"donated_state_is_never_written_again",
     [](Program& p) {
       train(p) = {act(1, 0)};
       function(p, "forward").donated[input_index(p, "forward", "p")] = true;
     },
     "nothing writes it again"},
    {"alias_of_two_different_values",
     [](Program& p) {
       Function& f = function(p, "update");
       f.aliases[0].input = static_cast<int>(input_index(p, "update", "g"));
     },
     "which lies elsewhere"},
    {"alias_with_the_microbatch_on_one_side",
     [](Program& p) {
       for (Port& port : function(p, "update").outputs) {
         if (port.value == p.value_named("p")) port.by_microbatch = true;
       }
     },
     "('p'[mb]) is said to take the place of input 0 ('p')"},
    {"alias_that_does_not_exist", [](Program& p) { function(p, "update").aliases[0].output = 7; },
     "output 7 and input"},
    {"two_outputs_are_one_value",
     [](Program& p) { function(p, "update").outputs[1] = function(p, "update").outputs[0]; }, "two outputs are 'p'"},
    {"donated_and_aliased", [](Program& p) { function(p, "update").donated[input_index(p, "update", "p")] = true; },
     "is donated and an output takes its place"},
    {"donated_and_taken_twice",
     [](Program& p) {
       Function& f = function(p, "update");
       f.donated[input_index(p, "update", "g")] = true;
       f.aliases.clear();
       f.outputs[0] = {p.value_named("y"), false};
       input(p, "update", "p") = input(p, "update", "g");
     },
     "'g' is donated and taken a second time"},
    {"a_residual_is_overwritten_before_its_reader",
     [](Program& p) {
       Function& f = function(p, "backward");
       f.donated.assign(2, false);
       plan_scratch(f, 64, [](const Graph&, const GraphNode&) { return Bytes(0); });
       train(p) = {act(0), act(1, 0), act(1, 1), act(2, 0), act(2, 1), act(3)};
     },
     "which holds microbatch 1: 'r' has 1 slots, too few"},
    {"an_input_has_too_few_slots", [](Program& p) { value(p, "x").slots = 1; }, "which holds microbatch 0: 'x'"},
    {"an_output_is_overwritten_before_the_host_reads_it", [](Program& p) { value(p, "y").slots = 1; },
     "writes 'y' slot 0 over what action 1 gave"},
    {"two_functions_of_one_name", [](Program& p) { function(p, "backward").name = "forward"; },
     "two functions are called 'forward'"},
    {"two_values_of_one_name", [](Program& p) { value(p, "q").name = "y"; }, "two values are called 'y'"},
    {"microbatch_minus_one", [](Program& p) { train(p)[1].microbatch = -1; }, "action 1: microbatch -1"},
    {"an_action_of_no_function", [](Program& p) { train(p)[1].function = 4; }, "there is no function 4"},
    {"waits_for_what_comes_later", [](Program& p) { train(p)[1].waits = {2}; }, "does not come before it"},
    {"no_slots", [](Program& p) { value(p, "g").slots = 0; }, "'g' has 0 slots"},
    {"read_before_written", [](Program& p) { train(p).erase(train(p).begin()); }, "which nothing has written"},
    {"a_scratch_value_over_a_live_one",
     [](Program& p) {
       Function& f = function(p, "forward");
       std::int64_t lowest = 1 << 20;
       for (Location& l : f.placement.values) {
         if (l.kind == Location::Kind::scratch) lowest = std::min(lowest, l.offset);
       }
       for (Location& l : f.placement.values) {
         if (l.kind == Location::Kind::scratch) l.offset = lowest;
       }
     },
     "which is still needed"},
    {"a_scratch_value_beyond_the_end",
     [](Program& p) {
       for (Location& l : function(p, "forward").placement.values) {
         if (l.kind == Location::Kind::scratch) l.offset = 1 << 20;
       }
     },
     "in a scratch of"},
    {"a_value_without_a_place",
     [](Program& p) {
       for (Location& l : function(p, "forward").placement.values) {
         if (l.kind == Location::Kind::scratch) l = {};
       }
     },
     "has no place"},
    {"a_workspace_smaller_than_the_kernel_needs",
     [](Program& p) {
       const Graph& g = function(p, "forward").graph;
       p.target.workspace[workspace_key(g, g.nodes()[0])] = Bytes(64);
     },
     "has a workspace of 0 bytes, needs 64"},
    {"two_values_of_the_arena_overlap", [](Program& p) { value(p, "p").offset = value(p, "g").offset; },
     "overlap in the arena"},
    {"a_value_after_the_end_of_the_arena", [](Program& p) { value(p, "p").offset = p.arena.count(); },
     "'p' ends after the arena"},
    {"a_value_that_is_not_aligned", [](Program& p) { value(p, "p").offset += 4; }, "alignment 64"},
    {"slots_that_overlap", [](Program& p) { value(p, "x").stride = 32; }, "a slot every 32 bytes, of 64 bytes"},
};

class Refused : public testing::TestWithParam<Defect> {};

TEST_P(Refused, by_the_verifier) {
  Program program = correct();
  ASSERT_NO_THROW(verify(program));
  GetParam().make(program);
  try {
    verify(program);
    FAIL() << GetParam().name << " was not seen\n" << to_text(program);
  } catch (const Failure& f) { EXPECT_NE(f.error().message.find(GetParam().message), std::string::npos) << f.what(); }
}

INSTANTIATE_TEST_SUITE_P(VerifyProgram, Refused, testing::ValuesIn(kDefects),
                         [](const auto& defect) { return std::string(defect.param.name); });

TEST(ActionOrder, streams_and_waits) {
  const ActionOrder order({"s",
                           {act(0), act(0, 0, Stream::network), act(0, 0, Stream::compute, {1}),
                            act(0, 0, Stream::network, {0}), act(0, 0, Stream::host, {3})}});
  EXPECT_TRUE(order.before(0, 2));   // one stream
  EXPECT_TRUE(order.before(1, 2));   // waits
  EXPECT_FALSE(order.before(0, 1));  // nothing orders them
  EXPECT_TRUE(order.before(0, 4));   // through 3
  EXPECT_TRUE(order.before(1, 4));
  EXPECT_FALSE(order.before(2, 4));
  EXPECT_FALSE(order.before(4, 4));
  EXPECT_EQ(order.release(0), 2);  // 1 may run beside it
  EXPECT_EQ(order.release(1), 2);
  EXPECT_EQ(order.release(2), 5);
  EXPECT_EQ(order.release(3), 4);
}

// Gathers run one block ahead with two buffers: memory is reused across streams as well.
TEST(PlanArena, places_are_shared_across_streams) {
  ProgramBuilder b("p", Mesh(), small_target(), nullptr);
  const Type shard(DType::f32, {256}), whole(DType::f32, {1024});
  b.add_value({"y", shard, Residence::output});
  Schedule schedule{"run", {}};
  constexpr int kBlocks = 8;
  for (int i = 0; i < kBlocks; ++i) {
    const std::string n = std::to_string(i);
    b.add_value({"shard" + n, shard, Residence::parameter});
    b.add_value({"whole" + n, whole, Residence::residual});
    Graph gather("gather" + n), use("use" + n);
    const Value s = gather.input("shard" + n, shard);
    gather.output("whole" + n, concatenate(std::vector<Value>{s, s, s, s}, 0));
    const int dims[] = {0};
    use.output("y", broadcast_scalar(reduce_sum(use.input("whole" + n, whole), dims), shard));
    b.add_function("gather" + n, std::move(gather), {}, {});
    b.add_function("use" + n, std::move(use), {}, {}, {"whole" + n});
  }
  for (int i = 0; i < kBlocks; ++i) {  // gather i overlaps with block i - 1
    std::vector<int> waits;
    if (i >= 2) waits.push_back(2 * (i - 2) + 1);
    schedule.actions.push_back(act(2 * i, 0, Stream::network, waits));
    schedule.actions.push_back(act(2 * i + 1, 0, Stream::compute, {2 * i}));
  }
  b.add_schedule(schedule);
  const Program program = b.finish();
  const MemoryByOwner owners = memory_by_owner(program);
  EXPECT_LE(owners[Residence::residual].count(), 3 * 4096) << to_text(program);
}

TEST(VerifyProgram, many_actions_on_two_streams_take_no_time) {
  ProgramBuilder b("p", Mesh(), small_target(), nullptr);
  constexpr int kMicrobatches = 2000;
  b.add_value({"x", kVector, Residence::input, kMicrobatches});
  b.add_value({"r", kVector, Residence::residual, 4});
  b.add_value({"g", kVector, Residence::gradient});
  Graph forward("forward"), backward("backward");
  forward.output("r", exp(forward.input("x", kVector)));
  backward.output("g", tanh(backward.input("r", kVector)));
  b.add_function("forward", std::move(forward), {{"x", {"x", true}}}, {{"r", {"r", true}}});
  b.add_function("backward", std::move(backward), {{"r", {"r", true}}}, {}, {"r"});
  Schedule schedule{"train", {}};
  for (int m = 0; m < kMicrobatches; ++m) {
    std::vector<int> waits;
    if (m >= 4) waits.push_back(2 * (m - 4) + 1);
    schedule.actions.push_back(act(0, m, Stream::compute, waits));
    schedule.actions.push_back(act(1, m, Stream::network, {2 * m}));
  }
  b.add_schedule(schedule);
  const Seconds began = processor_time();
  const Program program = b.finish();
  EXPECT_LT(processor_time() - began, Seconds(2.0));
  EXPECT_EQ(program.schedules[0].actions.size(), 2U * kMicrobatches);
}

TEST(MemoryByOwner, every_byte_once) {
  const Program program = correct();
  const MemoryByOwner owners = memory_by_owner(program);
  Bytes sum = owners.unused;
  for (const Bytes bytes : owners.bytes) sum += bytes;
  EXPECT_EQ(sum, program.arena);
  EXPECT_EQ(owners[Residence::state].count(), 64);
  EXPECT_EQ(owners[Residence::input].count(), 128);
}

// A scratch of two vectors; a residual of one vector takes its place after it.
TEST(MemoryByOwner, a_shared_place_is_the_first_owners) {
  ProgramBuilder b("p", Mesh(), small_target(), nullptr);
  b.add_value({"x", kVector, Residence::input});
  b.add_value({"r", kVector, Residence::residual});
  b.add_value({"y", kVector, Residence::output});
  b.add_value({"z", kVector, Residence::output});
  Graph first("first"), keep("keep"), use("use");
  const Value x = first.input("x", kVector);
  first.output("y", mul(tanh(x), exp(x)));
  keep.output("r", exp(keep.input("x", kVector)));
  use.output("z", tanh(use.input("r", kVector)));
  b.add_function("first", std::move(first), {}, {});
  b.add_function("keep", std::move(keep), {}, {});
  b.add_function("use", std::move(use), {}, {});
  b.add_schedule({"run", {act(0), act(1), act(2)}});
  const Program program = b.finish();
  const MemoryByOwner owners = memory_by_owner(program);
  EXPECT_EQ(program.arena.count(), 5 * 64);
  EXPECT_EQ(owners[Residence::residual].count(), 64);
  EXPECT_EQ(owners[Residence::activation].count(), 64);
}

TEST(Program, hash_covers_places_and_not_the_name) {
  Program a = correct(), b = correct();
  b.name = "another";
  EXPECT_EQ(hash_of(a), hash_of(b));
  for (Location& l : function(b, "forward").placement.values) {
    if (l.kind == Location::Kind::scratch) l.offset += 64;
  }
  EXPECT_NE(hash_of(a), hash_of(b));
}

}  // namespace
}  // namespace systole
