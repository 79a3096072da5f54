// Mixtures of experts have the same losses as their twins in tools/experts_golden.py, which work token by token without
// buffers. Parameter p of a model, in order, has the elements 0.3 sin(0.7 p + 0.37 i), plus 1 for the scale of a norm.

#include <gtest/gtest.h>

#include <cmath>

#include "describe/models/decoder/testing/tiny_decoder.h"

namespace systole {
namespace {

constexpr std::int64_t kSequenceLength = 12;

DecoderSpec two_layers(DecoderSpec config) {
  config.layers = 2;
  config.context = kSequenceLength;
  config.rope_scaling = {};
  return config;
}

// Two documents, then padding.
std::map<std::string, HostTensor> golden_rows() {
  std::map<std::string, HostTensor> data{
      {"labels", ints({1, kSequenceLength}, {6, 0, 5, -1, 4, 9, 3, 8, 2, -1, -1, -1})},
      {"segments", ints({1, kSequenceLength}, {1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 0, 0})},
      {"positions", ints({1, kSequenceLength}, {0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 0, 0})},
      {"tokens", HostTensor(DType::i32, {1, kSequenceLength})}};
  for (std::int64_t i = 0; i < kSequenceLength; ++i) data["tokens"].set(i, static_cast<double>((5 * i + 1) % 11));
  return data;
}

double loss_of(const DecoderSpec& config, bool training) {
  const Graph graph = in_f64(make_decoder(config)->loss({1, kSequenceLength}, training));
  const auto data = golden_rows();
  std::vector<HostTensor> tensors;
  for (std::size_t p = 0; p < graph.inputs().size(); ++p) {
    const GraphInput& input = graph.inputs()[p];
    if (!input.parameter) {
      tensors.push_back(data.at(input.name));
      continue;
    }
    tensors.emplace_back(DType::f64, graph.type(input.value).shape);
    const double one = input.parameter->init.kind == Init::Kind::ones ? 1 : 0;
    for (std::int64_t i = 0; i < tensors.back().size(); ++i)
      tensors.back().set(i, one + 0.3 * std::sin(0.7 * static_cast<double>(p) + 0.37 * static_cast<double>(i)));
  }
  return evaluate(graph, tensors)[0].at(0);
}

TEST(ExpertsGolden, mixtral) {
  const DecoderSpec config = two_layers(mixture_decoder());
  EXPECT_NEAR(loss_of(config, false), 13.814593159138, 1e-10);
  EXPECT_NEAR(loss_of(config, true), 13.974753223454, 1e-10);
}

// 9 of 60 choices are dropped.
TEST(ExpertsGolden, deepseek) {
  DecoderSpec config = two_layers(shared_experts_decoder());
  config.moe.capacity_factor = 0.75;
  EXPECT_NEAR(loss_of(config, false), 35.675089280453, 1e-10);
  EXPECT_NEAR(loss_of(config, true), 43.787019033475, 1e-10);
}

TEST(ExpertsGolden, qwen3) {
  const DecoderSpec config = two_layers(normed_heads_decoder());
  EXPECT_NEAR(loss_of(config, false), 24.081619175873, 1e-10);
  EXPECT_NEAR(loss_of(config, true), 24.241652820133, 1e-10);
}

// 4 of 30 choices are dropped.
TEST(ExpertsGolden, deepseek_v3) {
  const DecoderSpec config = two_layers(latent_decoder());
  EXPECT_NEAR(loss_of(config, false), 44.093055540918, 1e-10);
  EXPECT_NEAR(loss_of(config, true), 48.096813736019, 1e-10);
}

// A layer without experts, then one with; 3 of 30 choices are dropped.
TEST(ExpertsGolden, every_second_layer) {
  const DecoderSpec config = two_layers(interleaved_decoder());
  EXPECT_NEAR(loss_of(config, false), 31.321542932606, 1e-10);
  EXPECT_NEAR(loss_of(config, true), 35.337007778768, 1e-10);
}

}  // namespace
}  // namespace systole
