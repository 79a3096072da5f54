#include "describe/passes/int8_weights.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "describe/ir/evaluate.h"
#include "describe/ir/op.h"
#include "describe/ir/rewrite.h"
#include "describe/ir/verify.h"
#include "describe/ops/ops.h"

namespace systole {
namespace {

// Whole numbers of which each run of `each` has 127 at its end: such rows are quantised without error.
HostTensor whole_numbers(const Shape& shape, std::int64_t each) {
  HostTensor t(DType::f32, shape);
  for (std::int64_t i = 0; i < t.size(); ++i)
    t.set(i, i % each == each - 1 ? 127 : static_cast<double>(i * 37 % 201 - 100));
  return t;
}

std::vector<Int8Weight> weights_of(const Graph& graph) {
  const Graph* const graphs[] = {&graph};
  return int8_weights(graphs);
}

// The inputs of the graph with int8 weights, from those of the graph.
std::vector<HostTensor> quantized_inputs(const Graph& graph, const std::vector<Int8Weight>& weights,
                                         const std::vector<HostTensor>& inputs) {
  std::vector<HostTensor> all;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto found =
        std::ranges::find_if(weights, [&](const Int8Weight& w) { return w.from.name == graph.inputs()[i].name; });
    if (found == weights.end()) {
      all.push_back(inputs[i]);
      continue;
    }
    HostTensor q8(DType::i8, found->q8().shape), scale(DType::f32, found->scale().shape);
    const auto layers = static_cast<std::size_t>(found->stacked ? found->from.type.size(0) : 1);
    const std::size_t in = inputs[i].as<float>().size() / layers, rows = static_cast<std::size_t>(found->rows());
    for (std::size_t l = 0; l < layers; ++l)
      quantize_rows(*found, inputs[i].as<float>().subspan(l * in, in), 0, found->rows(),
                    q8.as<std::int8_t>().subspan(l * in, in), scale.as<float>().subspan(l * rows, rows));
    all.push_back(std::move(q8));
    all.push_back(std::move(scale));
  }
  return all;
}

void expect_equal_results(const Graph& graph, const std::vector<HostTensor>& inputs, std::size_t num_weights) {
  const std::vector<Int8Weight> weights = weights_of(graph);
  ASSERT_EQ(weights.size(), num_weights);
  const Graph narrow = with_int8_weights(graph, weights);
  verify(narrow);
  const auto want = evaluate(graph, inputs), got = evaluate(narrow, quantized_inputs(graph, weights, inputs));
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(got[i] == want[i]) << graph.outputs()[i].name;
}

TEST(Int8Weights, ExactProductsOfAnyDimOrderStayTheSame) {
  struct Case {
    const char* spec;
    Shape x, w;
    std::int64_t summed;  // innermost in both operands
  };
  // Transposed operands and results come from the same tensors, so that rows stay exact.
  for (const Case& c : {Case{"be,ve->bv", {3, 5}, {7, 5}, 5}, Case{"bse,ve->bvs", {2, 3, 5}, {7, 5}, 5},
                        Case{"bshd,ehd->bse", {2, 3, 2, 4}, {5, 2, 4}, 8}, Case{"be,hde->bhd", {3, 5}, {2, 4, 5}, 5},
                        Case{"be,hde->hbd", {3, 5}, {2, 4, 5}, 5}}) {
    Graph graph("product");
    const Value w = graph.parameter({"w", Type(DType::f32, c.w)}), x = graph.input("x", Type(DType::f32, c.x));
    graph.output("y", contract(x, w, c.spec));
    SCOPED_TRACE(c.spec);
    expect_equal_results(graph, {whole_numbers(c.w, c.summed), whole_numbers(c.x, c.summed)}, 1);
  }
}

// Parameters as models have them, [in, out]: summed dims come first, and move last.
TEST(Int8Weights, SummedDimsMoveLast) {
  Graph graph("product");
  const Value w = graph.parameter({"w", Type(DType::f32, {2, 3, 4})}),
              x = graph.input("x", Type(DType::f32, {5, 2, 3}));
  graph.output("y", contract(x, w, "bhd,hde->be"));
  const std::vector<Int8Weight> weights = weights_of(graph);
  ASSERT_EQ(weights.size(), 1U);
  EXPECT_EQ(weights[0].order, (std::vector<int>{2, 0, 1}));
  EXPECT_EQ(to_string(weights[0].q8()), "i8[4, 6]");
  HostTensor w_value(DType::f32, {2, 3, 4});
  for (std::int64_t i = 0; i < 24; ++i) w_value.set(i, i >= 20 ? 127 : static_cast<double>(i * 7 % 90));
  expect_equal_results(graph, {w_value, whole_numbers({5, 2, 3}, 6)}, 1);
}

Graph tied(bool scaled_table) {
  Graph graph("tied");
  const Value table = graph.parameter({"embed.tokens", Type(DType::f32, {7, 5})}),
              blocks = graph.parameter({"blocks.{layer}.w", Type(DType::f32, {3, 6, 5}, {"layer", "", ""})}),
              scale = graph.parameter({"norm.scale", Type(DType::f32, {5})}),
              ids = graph.input("ids", Type(DType::i32, {4}));
  const Value x = embedding(scaled_table ? mul(table, broadcast_last(scale, table.type())) : table, ids);
  Graph body("block");
  const Value carried = body.input("x", x.type()), slice = body.input("w", Type(DType::f32, {6, 5}));
  body.output("x", carried);
  body.output("y", contract(carried, slice, "be,ne->bn"));
  const Repeat all = repeat(std::move(body), 3, std::array{x}, std::array{blocks}, {}, "layer");
  graph.output("y", all.outputs[0]);
  graph.output("logits", contract(x, table, "be,ve->bv"));
  graph.output("rows", mul(all.carries[0], broadcast_last(scale, x.type())));
  return graph;
}

TEST(Int8Weights, StackedOnesAndATableThatIsLookedUpToo) {
  HostTensor ids(DType::i32, {4});
  for (std::int64_t i = 0; i < 4; ++i) ids.set(i, static_cast<double>(2 * i));
  const std::vector<HostTensor> inputs{whole_numbers({7, 5}, 5), whole_numbers({3, 6, 5}, 5), whole_numbers({5}, 5),
                                       ids};
  expect_equal_results(tied(false), inputs, 2);
  const std::vector<Int8Weight> weights = weights_of(tied(false));
  EXPECT_EQ(weights[1].q8_name(), "blocks.{layer}.w.q8");
  EXPECT_EQ(to_string(weights[1].q8()), "i8[layer=3, 6, 5]");
  EXPECT_EQ(to_string(weights[1].scale()), "f32[layer=3, 6]");
}

TEST(Int8Weights, OtherUsesKeepAParameter) {
  const std::vector<Int8Weight> weights = weights_of(tied(true));
  ASSERT_EQ(weights.size(), 1U);
  EXPECT_EQ(weights[0].from.name, "blocks.{layer}.w");
}

TEST(Int8Weights, AdaptersAreLeftOut) {
  Graph graph("adapter");
  const Value a = graph.parameter({"q.lora_a", Type(DType::f32, {5, 2})}),
              x = graph.input("x", Type(DType::f32, {3, 5}));
  graph.output("y", contract(x, a, "be,er->br"));
  EXPECT_TRUE(weights_of(graph).empty());
}

TEST(Int8Weights, ExpertsAreRefusedByName) {
  Graph graph("experts");
  const Value w = graph.parameter({"moe.up", Type(DType::f32, {2, 5, 4})}),
              x = graph.input("x", Type(DType::f32, {2, 3, 5}));
  graph.output("y", contract(x, w, "xce,xem->xcm"));
  try {
    weights_of(graph);
    FAIL() << "taken";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.error().kind, ErrorKind::unsupported);
    EXPECT_NE(failure.error().message.find("moe.up"), std::string::npos) << failure.error().message;
  }
}

// Two graphs that use a parameter in different ways agree on none.
TEST(Int8Weights, AllGraphsAgree) {
  const auto graph_of = [](const char* spec) {
    Graph graph("g");
    const Value w = graph.parameter({"w", Type(DType::f32, {5, 5})}), x = graph.input("x", Type(DType::f32, {3, 5}));
    graph.output("y", contract(x, w, spec));
    return graph;
  };
  const Graph one = graph_of("be,en->bn"), other = graph_of("be,ne->bn");
  const Graph *const same[] = {&one, &one}, *const both[] = {&one, &other};
  EXPECT_EQ(int8_weights(same).size(), 1U);
  EXPECT_TRUE(int8_weights(both).empty());
}

}  // namespace
}  // namespace systole
