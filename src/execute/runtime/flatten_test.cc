// The order of the calls that a device gets: overlap in a fully sharded (ZeRO-3) step of two layers on two devices.
#include "execute/runtime/flatten.h"

#include <gtest/gtest.h>

#include <array>

#include "describe/ops/ops.h"
#include "describe/partition/builder.h"
#include "describe/program/overlap.h"

namespace systole {
namespace {

// Each layer: x ← x·w, w sharded; the partial sum of each layer's w is reduce-scattered into "terms".
Graph layers() {
  Graph body("layer");
  const Value x = body.input("x", Type(DType::f32, {4, 4})), w = body.input("w", Type(DType::f32, {2, 4}));
  const Value whole = all_gather(cast(w, DType::bf16), "fsdp", 2, 0);
  const Value y = contract(cast(x, DType::bf16), whole, "be,eh->bh", DType::f32);
  body.output("x", tanh(y));
  body.output("terms", reduce_scatter(contract(x, y, "be,bh->eh"), "fsdp", 2, 0));
  Graph g("step");
  const Value in = g.input("x", Type(DType::f32, {4, 4}));
  Parameter p;
  p.name = "w", p.type = Type(DType::f32, {2, 2, 4});
  const Value stored = g.parameter(p);
  const Repeat repeated = repeat(std::move(body), 2, std::array{in}, std::array{stored}, {});
  g.output("x", repeated.carries[0]);
  g.output("terms", repeated.outputs[0]);
  return g;
}

Program program_of(bool overlap) {
  Target target;
  target.name = target.kind = "null";
  ProgramBuilder builder("step", Mesh::parse("fsdp=2").value(), target, nullptr);
  builder.set_overlap(overlap);
  Graph graph = layers();
  builder.add_parameters(graph);
  const auto add = [&](const std::string& name, const std::string& as, const Type& type, Residence residence) {
    ProgramValue value;
    value.name = name + as, value.type = type, value.residence = residence;
    builder.add_value(value);
  };
  add("x", "", graph.type(graph.inputs()[0].value), Residence::input);
  for (const GraphOutput& output : graph.outputs()) add(output.name, "'", graph.type(output.value), Residence::output);
  builder.add_function("step", std::move(graph), {}, {{"x", {"x'", false}}, {"terms", {"terms'", false}}});
  builder.add_schedule({"once", {Action{0}}});
  return builder.finish();
}

std::vector<KernelCall> calls_of(const Program& program) {
  const Function& f = program.functions[0];
  std::vector<SlotAddress> in, out;
  const auto address = [&](const Port& port) {
    const ProgramValue& value = program.values[static_cast<std::size_t>(port.value)];
    return SlotAddress{port.value, 0, value.offset, &value.type};
  };
  for (const Port& port : f.inputs) in.push_back(address(port));
  for (const Port& port : f.outputs) out.push_back(address(port));
  return flatten(f, {in, out, f.scratch_offset});
}

std::string name_of(const KernelCall& call) {
  std::string name = call.node->op->name;
  for (const std::int64_t layer : call.layers) name += fmt::format(" {}", layer);
  return name;
}

std::vector<std::string> list_of(const Program& program) {
  const std::vector<KernelCall> calls = calls_of(program);
  std::vector<std::string> list;
  for (const KernelCall& call : calls) {
    list.push_back((call.begins ? "begin " : "") + name_of(call));
    if (call.after >= 0) list.back() += " after " + name_of(calls[static_cast<std::size_t>(call.after)]);
  }
  return list;
}

TEST(Flatten, the_design_on_paper) {
  const std::vector<std::string> without{
      "cast 0", "all_gather 0", "cast 0", "contract 0", "tanh 0", "contract 0", "reduce_scatter 0",  //
      "cast 1", "all_gather 1", "cast 1", "contract 1", "tanh 1", "contract 1", "reduce_scatter 1"};
  EXPECT_EQ(list_of(program_of(false)), without);
  // The all_gather of layer 1 overlaps the compute of layer 0; the reduce_scatter of layer 0 overlaps layer 1.
  const std::vector<std::string> with{"cast 0",
                                      "begin all_gather 0",
                                      "cast 1",
                                      "begin all_gather 1",
                                      "cast 0",
                                      "contract 0 after all_gather 0",
                                      "tanh 0",
                                      "contract 0",
                                      "begin reduce_scatter 0",
                                      "cast 1",
                                      "contract 1 after all_gather 1",
                                      "tanh 1",
                                      "contract 1 after reduce_scatter 0",
                                      "begin reduce_scatter 1"};
  EXPECT_EQ(list_of(program_of(true)), with);
}

// The values that are computed ahead alternate between two slots.
TEST(Flatten, what_is_made_ahead_has_two_places_in_turns) {
  const Program program = program_of(true);
  const std::vector<KernelCall> calls = calls_of(program);
  std::vector<std::int64_t> gathered, read;
  for (const KernelCall& call : calls) {
    if (call.node->op->name == std::string_view("all_gather")) gathered.push_back(call.results[0]);
    if (call.node->op->name == std::string_view("contract") &&
        call.operands[1] >= program.functions[0].scratch_offset &&
        call.graph->type(call.node->operands[1]).dtype == DType::bf16)
      read.push_back(call.operands[1]);
  }
  ASSERT_EQ(gathered.size(), 2U);
  EXPECT_EQ(gathered[1], gathered[0] + twin_stride(Bytes(32)));
  EXPECT_EQ(read, gathered);
}

}  // namespace
}  // namespace systole
