// A bert and a t5 give the logits of transformers. Parameter p of a model, in order, has the elements
// 0.3 sin(0.7 p + 0.37 i), plus 1 for the scale of a norm. The numbers below are the output of transformers 5.23.0 in
// f64 for the same parameters (tools/encoders_golden.py prints them).

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "describe/models/bert/bert.h"
#include "describe/models/t5/testing/tiny_t5.h"
#include "describe/models/testing/tiny_inputs.h"

namespace systole {
namespace {

constexpr std::int64_t kVocabulary = 11;

HostTensor numbered(const Type& type, const std::function<double(std::int64_t)>& value) {
  HostTensor tensor(type.dtype, type.shape);
  for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, value(i));
  return tensor;
}

// Logits of row 0 at `position`.
std::vector<double> logits_at(const Model& model, const BatchShape& shape, std::int64_t position) {
  const Graph graph = in_f64(model.forward(shape));
  std::vector<HostTensor> tensors;
  for (std::size_t p = 0; p < graph.inputs().size(); ++p) {
    const GraphInput& input = graph.inputs()[p];
    const double one = input.parameter && input.parameter->init.kind == Init::Kind::ones ? 1 : 0;
    tensors.push_back(numbered(graph.type(input.value), [&](std::int64_t i) -> double {
      if (input.parameter) return one + 0.3 * std::sin(0.7 * static_cast<double>(p) + 0.37 * static_cast<double>(i));
      if (input.name == "tokens") return static_cast<double>((5 * i + 1) % kVocabulary);
      if (input.name == "target_tokens") return i == 0 ? 0 : static_cast<double>((3 * i - 1) % kVocabulary);
      if (input.name == "positions") return static_cast<double>(i);
      if (input.name == "types") return i < 6 ? 0 : 1;
      return 1;  // segments
    }));
  }
  const HostTensor logits = evaluate(graph, tensors)[0];
  std::vector<double> row;
  for (std::int64_t v = 0; v < kVocabulary; ++v) row.push_back(logits.at(position * kVocabulary + v));
  return row;
}

void expect_near(const std::vector<double>& got, const std::vector<double>& want, double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], tolerance) << i;
}

TEST(EncodersGolden, bert) {
  BertSpec config;
  config.layers = 2;
  config.width = 12;
  config.heads = 3;
  config.mlp = 20;
  config.vocabulary = kVocabulary;
  config.context = 12;
  expect_near(logits_at(*make_bert(config), {1, 10}, 3),
              {-0.878658151, -1.522373674, 1.099338323, 0.518187097, -1.549186268, 0.409137469, 1.674901829,
               -0.759198455, -0.584562403, 1.793981532, 0.280458345},
              2e-9);
}

// transformers computes the statistics of T5's norms in f32, whose eps is 1.2e-7; twelve norms follow each other.
constexpr double kF32Norms = 1e-5;

TEST(EncodersGolden, t5) {
  expect_near(logits_at(*make_t5(tiny_t5()), {1, 12, 9}, 8),
              {0.728569669, -0.123386645, -0.662179484, 0.479683048, 0.404078246, -0.697103897, -0.028990197,
               0.712702543, -0.354490956, -0.521962939, 0.635341575},
              kF32Norms);
  expect_near(logits_at(*make_t5(tiny_gated_t5()), {1, 12, 9}, 8),
              {-2.203183346, -1.044030997, 2.764941144, -0.443690395, -2.526206337, 1.802956654, 1.556096290,
               -2.640239481, -0.135472648, 2.713132735, -1.324372390},
              kF32Norms);
}

}  // namespace
}  // namespace systole
