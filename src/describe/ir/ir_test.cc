#include "describe/ir/ir.h"

#include <gtest/gtest.h>

#include "describe/ir/evaluate.h"
#include "describe/ir/op.h"
#include "describe/ir/text.h"
#include "describe/ir/verify.h"
#include "describe/ops/ops.h"

namespace systole {
namespace {

Graph small_graph() {
  Graph g("small");
  const Value w =
      g.parameter({"w.{layer}", Type(DType::f32, {2, 3}, {"layer", "n"}), {Init::Kind::normal, 0.02}, true, false, 1});
  const Value f = g.parameter({"f", Type(DType::f32, {3}, {"n"}), {Init::Kind::ones, 0}, false});
  const Value x = g.input("x", Type(DType::f32, {3}, {"n"}));
  Graph body("body");
  const Value h = body.input("h", x.type()), wl = body.input("w", slice_type(w.type()));
  const Value y = mul(h, tanh(wl)).named("block.out");
  body.output("h", y);
  body.output("kept", exp(y));
  const Value carries[] = {x}, stacked[] = {w};
  const Repeat r = repeat(std::move(body), 2, carries, stacked, {});
  g.output("y", mul(r.carries[0], f));
  g.output("kept", r.outputs[0]);
  return g;
}

TEST(GraphText, reads_back_to_the_same_text) {
  const std::string text = to_text(small_graph());
  Result<Graph> again = parse_graph(text, "small.graph");
  ASSERT_TRUE(again.ok()) << to_string(again.error());
  EXPECT_EQ(to_text(*again), text);
  verify(*again);
  EXPECT_EQ(again->inputs()[0].parameter, small_graph().inputs()[0].parameter);
}

TEST(GraphText, hostile_text_is_refused_with_its_place) {
  struct Case {
    const char* text;
    const char* says;
    int line;
  };
  const Case cases[] = {
      {"graph \"g\" {\n  %0 = input \"x\" : f31[3]\n  return\n}", "no element type", 2},
      {"graph \"g\" {\n  %0 = nonsense(%1) : f32[]\n  return\n}", "no op is named", 2},
      {"graph \"g\" {\n  return \"y\" %7\n}", "before it is defined", 2},
      {"graph \"g\" {\n  %0 = input \"x\" : f32[4611686018427387904, 4]\n  return\n}", "2^62", 2},
      {"graph \"g\" {\n  %0 = input \"x\" : f32[3]\n  %1 = add(%0, %0) : f32[4]\n  return\n}", "is written", 3},
      {"graph \"g", "quote", 1},
      {"", "expected 'graph'", 1},
  };
  for (const Case& c : cases) {
    Result<Graph> g = parse_graph(c.text, "bad.graph");
    ASSERT_FALSE(g.ok()) << c.text;
    EXPECT_NE(g.error().message.find(c.says), std::string::npos) << to_string(g.error());
    EXPECT_EQ(g.error().where.line, c.line) << to_string(g.error());
  }
}

TEST(GraphText, deep_nesting_is_refused) {
  std::string text;
  for (int i = 0; i < 100; ++i)
    text += "graph \"g\" { %0 = input \"x\" : f32[1] %1 = repeat(%0) {carries=1} : f32[1] [ ";
  EXPECT_FALSE(parse_graph(text, "deep.graph").ok());
}

TEST(Graph, repeat_threads_carries_and_stacks_outputs) {
  const double w[] = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6}, f[] = {2, 2, 2}, x[] = {1, 2, 3};
  const HostTensor inputs[] = {HostTensor(DType::f32, {2, 3}, w), HostTensor(DType::f32, {3}, f),
                               HostTensor(DType::f32, {3}, x)};
  const std::vector<HostTensor> out = evaluate(small_graph(), inputs);
  for (std::int64_t i = 0; i < 3; ++i) {
    const auto k = static_cast<std::size_t>(i);
    const double once = x[k] * std::tanh(w[k]), twice = once * std::tanh(w[k + 3]);
    EXPECT_NEAR(out[0].at(i), 2 * twice, 1e-6);
    EXPECT_NEAR(out[1].at(i), std::exp(once), 1e-6);
    EXPECT_NEAR(out[1].at(i + 3), std::exp(twice), 1e-6);
  }
}

TEST(Graph, a_wrong_node_is_refused_when_it_is_built) {
  Graph g("g");
  const Value x = g.input("x", Type(DType::f32, {3})), y = g.input("y", Type(DType::f32, {4}));
  try {
    add(x, y);
    FAIL();
  } catch (const Failure& f) { EXPECT_NE(f.error().message.find("elementwise_c1"), std::string::npos); }
}

}  // namespace
}  // namespace systole
