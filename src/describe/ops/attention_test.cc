// Beyond the generic test: attention against an explicit softmax(q kᵀ) v, decoding against the whole sequence, and the
// work of pairs that data masks.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "describe/ir/evaluate.h"
#include "describe/ir/op.h"
#include "describe/ops/ops.h"
#include "describe/passes/passes.h"

namespace systole {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr std::int64_t kB = 2, kT = 5, kS = 5, kH = 4, kN = 2, kD = 3;

HostTensor waves(const Shape& shape, double phase) {
  HostTensor tensor(DType::f64, shape);
  for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, std::sin(phase + 1.7 * static_cast<double>(i)));
  return tensor;
}

HostTensor ints(const Shape& shape, const std::vector<double>& values) { return HostTensor(DType::i32, shape, values); }

struct Inputs {
  HostTensor q = waves({kB, kT, kH, kD}, 0), k = waves({kB, kS, kN, kD}, 1), v = waves({kB, kS, kN, kD}, 2);
};

// Row (b, i, a) of o, by the formula with a score matrix.
std::vector<double> written_out(const Inputs& in, std::int64_t b, std::int64_t i, std::int64_t a, const auto& sees,
                                const std::function<double(std::int64_t, std::int64_t)>& bias) {
  std::vector<double> o(kD, 0.0);
  double sum = 0;
  for (std::int64_t j = 0; j < kS; ++j) {
    if (!sees(b, i, j)) continue;
    const std::int64_t query = ((b * kT + i) * kH + a) * kD, key = ((b * kS + j) * kN + a / 2) * kD;
    double score = 0;
    for (std::int64_t c = 0; c < kD; ++c) score += in.q.at(query + c) * in.k.at(key + c);
    const double p = std::exp(score / std::sqrt(3.0) + (bias ? bias(a, j - i) : 0));
    sum += p;
    for (std::int64_t c = 0; c < kD; ++c) o[static_cast<std::size_t>(c)] += p * in.v.at(key + c);
  }
  for (double& value : o) value = sum == 0 ? 0 : value / sum;
  return o;
}

// `bias`: function of head and distance.
void expect_written_out(const Inputs& in, const HostTensor& o, const auto& sees,
                        const std::function<double(std::int64_t, std::int64_t)>& bias = nullptr) {
  for (std::int64_t b = 0; b < kB; ++b) {
    for (std::int64_t i = 0; i < kT; ++i) {
      for (std::int64_t a = 0; a < kH; ++a) {
        const std::vector<double> want = written_out(in, b, i, a, sees, bias);
        for (std::int64_t c = 0; c < kD; ++c) {
          EXPECT_NEAR(o.at(((b * kT + i) * kH + a) * kD + c), want[static_cast<std::size_t>(c)], 1e-14);
        }
      }
    }
  }
}

struct Built {
  Graph graph{"attention"};
  Value q = graph.input("q", Type(DType::f64, {kB, kT, kH, kD}));
  Value k = graph.input("k", Type(DType::f64, {kB, kS, kN, kD}));
  Value v = graph.input("v", Type(DType::f64, {kB, kS, kN, kD}));
};

TEST(Attention, CausalWithGroupedQueriesIsTheFormula) {
  Built built;
  built.graph.output("o", attention(built.q, built.k, built.v, {}).o);
  const Inputs in;
  const HostTensor tensors[] = {in.q, in.k, in.v};
  expect_written_out(in, evaluate(built.graph, tensors)[0],
                     [](std::int64_t, std::int64_t i, std::int64_t j) { return j <= i; });
}

TEST(Attention, SegmentsAndOffsetAreTheFormulaAndNothingSeenIsZero) {
  Built built;
  AttentionOptions options;
  options.q_segments = built.graph.input("q_segments", Type(DType::i32, {kB, kT}));
  options.k_segments = built.graph.input("k_segments", Type(DType::i32, {kB, kS}));
  options.offset = built.graph.input("offset", Type(DType::i32, {kB}));
  const Attention result = attention(built.q, built.k, built.v, options);
  const AttentionGrad d =
      attention_grad(built.q, built.k, built.v, result.o, result.lse, full_like(result.o, 1), options);
  built.graph.output("o", result.o);
  built.graph.output("lse", result.lse);
  built.graph.output("dq", d.dq);
  built.graph.output("dk", d.dk);
  built.graph.output("dv", d.dv);
  const Inputs in;
  const std::vector<double> of_q{0, 0, 1, 1, 2, 7, 1, 1, 1, 1}, of_k{0, 0, 0, 1, 1, 1, 1, 1, 1, 0}, offset{1, -2};
  const HostTensor tensors[] = {in.q, in.k, in.v, ints({kB, kT}, of_q), ints({kB, kS}, of_k), ints({kB}, offset)};
  const std::vector<HostTensor> out = evaluate(built.graph, tensors);
  auto sees = [&](std::int64_t b, std::int64_t i, std::int64_t j) {
    const auto at = [](const std::vector<double>& list, std::int64_t index) {
      return list[static_cast<std::size_t>(index)];
    };
    return at(of_q, b * kT + i) == at(of_k, b * kS + j) &&
           static_cast<double>(j) <= static_cast<double>(i) + at(offset, b);
  };
  expect_written_out(in, out[0], sees);
  for (std::int64_t b = 0; b < kB; ++b) {
    for (std::int64_t i = 0; i < kT; ++i) {
      bool any = false;
      for (std::int64_t j = 0; j < kS; ++j) any = any || sees(b, i, j);
      for (std::int64_t a = 0; a < kH; ++a) {
        EXPECT_EQ(out[1].at((b * kH + a) * kT + i) == -kInf, !any);
        for (std::int64_t c = 0; !any && c < kD; ++c) EXPECT_EQ(out[2].at(((b * kT + i) * kH + a) * kD + c), 0);
      }
    }
  }
  for (std::size_t result_index = 2; result_index < 5; ++result_index) {
    for (const double value : out[result_index].values()) EXPECT_TRUE(std::isfinite(value));
  }
}

// The cache is longer than its contents: query i of the decoder is query i + offset of the whole sequence.
TEST(Attention, DecodingWithAnOffsetIsTheTailOfTheWhole) {
  const std::int64_t tail = 2;
  Built built;
  AttentionOptions options;
  options.offset = constant(built.graph, Type(DType::i32, {kB}), kT - tail);
  built.graph.output("whole", slice_dim(attention(built.q, built.k, built.v, {}).o, 1, kT - tail, kT));
  built.graph.output("tail", attention(slice_dim(built.q, 1, kT - tail, kT), built.k, built.v, options).o);
  const Inputs in;
  const HostTensor tensors[] = {in.q, in.k, in.v};
  const std::vector<HostTensor> out = evaluate(built.graph, tensors);
  EXPECT_EQ(out[0], out[1]);
}

// Distances beyond the table use its ends. The tail of a cache has the distances of the whole sequence.
TEST(Attention, ABiasByDistanceIsAddedToTheScores) {
  constexpr std::int64_t kPlaces = 4, kOrigin = 2, kTail = 2;
  for (const bool causal : {false, true}) {
    Built built;
    AttentionOptions options{.causal = causal};
    options.bias_by_distance = built.graph.input("bias", Type(DType::f64, {kH, kPlaces}));
    options.bias_origin = kOrigin;
    built.graph.output("o", attention(built.q, built.k, built.v, options).o);
    AttentionOptions cached = options;
    cached.causal = true;
    cached.offset = constant(built.graph, Type(DType::i32, {kB}), kT - kTail);
    built.graph.output("tail", attention(slice_dim(built.q, 1, kT - kTail, kT), built.k, built.v, cached).o);
    const Inputs in;
    const HostTensor bias = waves({kH, kPlaces}, 3), tensors[] = {in.q, in.k, in.v, bias};
    const std::vector<HostTensor> out = evaluate(built.graph, tensors);
    const auto sees = [&](std::int64_t, std::int64_t i, std::int64_t j) { return !causal || j <= i; };
    expect_written_out(in, out[0], sees, [&](std::int64_t a, std::int64_t distance) {
      return bias.at(a * kPlaces + std::clamp<std::int64_t>(distance + kOrigin, 0, kPlaces - 1));
    });
    const std::int64_t row = kH * kD;
    for (std::int64_t b = 0; causal && b < kB; ++b) {
      for (std::int64_t x = 0; x < kTail * row; ++x)
        EXPECT_EQ(out[1].at(b * kTail * row + x), out[0].at((b * kT + kT - kTail) * row + x));
    }
  }
}

TEST(Attention, ABiasStaysAsWideAsTheScores) {
  Graph graph("bias");
  const Type type(DType::f32, {kB, kT, kH, kD});
  const Value q = graph.input("q", type);
  AttentionOptions options;
  options.bias_by_distance = graph.input("bias", Type(DType::f32, {kH, 3}));
  graph.output("o", attention(q, q, q, options).o);
  const Graph mixed = apply_precision(graph, {DType::f32, DType::bf16, DType::f32, DType::f32});
  int seen = 0;
  for (const GraphNode& node : mixed.nodes()) {
    if (node.op->name != std::string_view("attention")) continue;
    ++seen;
    EXPECT_EQ(mixed.type(node.operands[0]).dtype, DType::bf16);
    EXPECT_EQ(mixed.type(node.operands[3]).dtype, DType::f32);
  }
  EXPECT_EQ(seen, 1);
}

Work work_of(const char* name, const std::vector<Type>& operands, const Attrs& attrs) {
  const OpDef& op = op_named(name);
  const OpCall call{op, attrs, operands, {}};
  return op.work(call, op.infer(call));
}

TEST(Attention, CausalCountsHalfAndUtilisationLeavesTheSecondScoresOut) {
  const Type q(DType::bf16, {3, 8, 4, 16}), lse(DType::f32, {3, 4, 8});
  const Attrs attrs{{"causal", true}, {"scale", 0.25}, {"segments", false}, {"offsets", false}};
  const std::int64_t pairs = 3 * 4 * 36;  // 8 · 9 / 2
  EXPECT_EQ(work_of("attention", {q, q, q}, attrs).model_flops, pairs * 4 * 16);
  const Work backward = work_of("attention_grad", {q, q, q, q, lse, q}, attrs);
  EXPECT_EQ(backward.model_flops, pairs * 8 * 16);
  EXPECT_EQ(backward.flops, pairs * (10 * 16 + 5) + 3 * 4 * 8 * 2 * 16);
}

TEST(Attention, PairsMaskedByDataAreSkippedNotLost) {
  Built built;
  AttentionOptions options{false, 0, {}, {}, {}};
  options.q_segments = built.graph.input("q_segments", Type(DType::i32, {kB, kT}));
  options.k_segments = built.graph.input("k_segments", Type(DType::i32, {kB, kS}));
  const Attention result = attention(built.q, built.k, built.v, options);
  built.graph.output("o", result.o);
  const Inputs in;
  const HostTensor tensors[] = {in.q, in.k, in.v, ints({kB, kT}, {0, 0, 0, 1, 1, 2, 2, 2, 2, 2}),
                                ints({kB, kS}, {0, 0, 0, 1, 1, 3, 2, 2, 2, 2})};
  const Tally before = tally();
  evaluate(built.graph, tensors);
  const std::int64_t masked = (12 + 5) * kH;
  EXPECT_EQ(tally().skipped_flops - before.skipped_flops, masked * (4 * kD + 3));
  EXPECT_EQ(tally().skipped_transcendentals - before.skipped_transcendentals, masked);
  const std::int64_t all = kB * kH * kT * kS * (4 * kD + 3) + kB * kH * kT * (kD + 1);
  EXPECT_EQ(tally().flops - before.flops + tally().skipped_flops - before.skipped_flops, all);
}

TEST(Attention, AWindowIsTheFormulaAndItsWorkIsOfShape) {
  constexpr std::int64_t kWindow = 2;
  Built built;
  AttentionOptions options;
  options.window = kWindow;
  const Attention result = attention(built.q, built.k, built.v, options);
  attention_grad(built.q, built.k, built.v, result.o, result.lse, full_like(result.o, 1), options);
  built.graph.output("o", result.o);
  const Inputs in;
  const HostTensor tensors[] = {in.q, in.k, in.v};
  const Tally before = tally();
  expect_written_out(in, evaluate(built.graph, tensors)[0],
                     [](std::int64_t, std::int64_t i, std::int64_t j) { return j <= i && i - j < kWindow; });
  EXPECT_EQ(tally().skipped_flops, before.skipped_flops) << "nothing is left to data";
  const Type q(DType::bf16, {3, 8, 4, 16}), lse(DType::f32, {3, 4, 8});
  const auto attrs = [](bool offsets, std::int64_t window) {
    return Attrs{{"causal", true}, {"scale", 0.25}, {"segments", false}, {"offsets", offsets}, {"window", window}};
  };
  for (const std::int64_t window : {1, 2, 5, 7, 8, 100}) {
    std::int64_t pairs = 0;
    for (std::int64_t i = 0; i < 8; ++i) pairs += 3 * 4 * std::min(i + 1, window);
    EXPECT_EQ(work_of("attention", {q, q, q}, attrs(false, window)).model_flops, pairs * 4 * 16);
    EXPECT_EQ(work_of("attention_grad", {q, q, q, q, lse, q}, attrs(false, window)).model_flops, pairs * 8 * 16);
  }
  // One token of a decoder: its position is data; the number of keys that it can see is not.
  const Type token(DType::bf16, {3, 1, 4, 16});
  EXPECT_EQ(work_of("attention", {token, q, q, Type(DType::i32, {3})}, attrs(true, 5)).model_flops, 3 * 4 * 5 * 4 * 16);
}

TEST(Attention, DecodingInAWindowIsTheTailOfTheWhole) {
  const std::int64_t tail = 2;
  Built built;
  AttentionOptions whole, decode;
  whole.window = decode.window = 3;
  decode.offset = constant(built.graph, Type(DType::i32, {kB}), kT - tail);
  built.graph.output("whole", slice_dim(attention(built.q, built.k, built.v, whole).o, 1, kT - tail, kT));
  built.graph.output("tail", attention(slice_dim(built.q, 1, kT - tail, kT), built.k, built.v, decode).o);
  const Inputs in;
  const HostTensor tensors[] = {in.q, in.k, in.v};
  const std::vector<HostTensor> out = evaluate(built.graph, tensors);
  EXPECT_EQ(out[0], out[1]);
}

}  // namespace
}  // namespace systole
