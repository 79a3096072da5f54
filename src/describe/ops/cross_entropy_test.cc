// Beyond the generic test: values computed by hand, ignored labels, and logits at the limits.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "describe/ir/evaluate.h"
#include "describe/ops/ops.h"

namespace systole {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

struct Outcome {
  std::vector<double> loss, lse, dlogits;
};

// For logits f64[rows, v]; the gradient is that of Σ loss.
Outcome outcome_of(std::int64_t v, const std::vector<double>& logits, const std::vector<double>& labels) {
  const auto rows = static_cast<std::int64_t>(labels.size());
  Graph graph("loss");
  const Value x = graph.input("logits", Type(DType::f64, {rows, v}));
  const Value y = graph.input("labels", Type(DType::i32, {rows}));
  const CrossEntropy result = cross_entropy(x, y);
  graph.output("loss", result.loss);
  graph.output("lse", result.lse);
  graph.output("dlogits", cross_entropy_grad(x, y, result.lse, full_like(result.loss, 1)));
  const HostTensor inputs[] = {HostTensor(DType::f64, {rows, v}, logits), HostTensor(DType::i32, {rows}, labels)};
  const std::vector<HostTensor> out = evaluate(graph, inputs);
  return {out[0].values(), out[1].values(), out[2].values()};
}

TEST(CrossEntropy, ValuesByHand) {
  const Outcome outcome = outcome_of(2, {0, std::log(3)}, {0});
  EXPECT_NEAR(outcome.loss[0], std::log(4), 1e-15);
  EXPECT_NEAR(outcome.dlogits[0], -0.75, 1e-15);
  EXPECT_NEAR(outcome.dlogits[1], 0.75, 1e-15);
}

TEST(CrossEntropy, AnIgnoredLabelCostsNothingEvenInARowOfNan) {
  const Outcome outcome = outcome_of(2, {1, 2, std::nan(""), 1}, {-1, -100});
  EXPECT_EQ(outcome.loss, (std::vector<double>{0, 0}));
  EXPECT_EQ(outcome.dlogits, (std::vector<double>{0, 0, 0, 0}));
}

TEST(CrossEntropy, ALabelPastTheVocabularyPicksNothing) {
  const Outcome outcome = outcome_of(2, {0, 0}, {2});
  EXPECT_EQ(outcome.loss, outcome.lse);
  EXPECT_NEAR(outcome.dlogits[0], 0.5, 1e-15);
  EXPECT_NEAR(outcome.dlogits[1], 0.5, 1e-15);
}

TEST(CrossEntropy, LargeLogitsDoNotOverflow) {
  EXPECT_NEAR(outcome_of(2, {1e4, 1e4}, {1}).loss[0], std::log(2), 1e-11);
}

TEST(CrossEntropy, MinusInfinity) {
  const Outcome outcome = outcome_of(2, {-kInf, 0, -kInf, -kInf}, {0, 1});
  EXPECT_EQ(outcome.loss, (std::vector<double>{kInf, kInf}));
  EXPECT_EQ(outcome.lse, (std::vector<double>{0, -kInf}));
  EXPECT_EQ(outcome.dlogits, (std::vector<double>{-1, 1, 0, -1}));
}

TEST(CrossEntropy, PlusInfinityShows) { EXPECT_TRUE(std::isnan(outcome_of(2, {kInf, 0}, {1}).loss[0])); }

}  // namespace
}  // namespace systole
