// Whole tiny models: gradients against central differences in f64 along random directions, parameter by parameter;
// every recompute policy gives the same bits.

#include <gtest/gtest.h>

#include "describe/graph/autodiff.h"
#include "describe/graph/verify.h"
#include "describe/models/decoder/decoder.h"
#include "describe/models/mlp/mlp.h"
#include "describe/models/tiny_inputs.h"

namespace systole {
namespace {

using Tensors = std::map<std::string, HostTensor>;

Tensors inputs_of(const Graph& loss, std::int64_t vocabulary) {
  Tensors tensors;
  for (const GraphInput& input : loss.inputs()) {
    const Type& type = loss.type(input.value);
    const bool ones = input.parameter && input.parameter->init.kind == Init::Kind::ones;
    tensors[input.name] = is_float(type.dtype) ? random_tensor(type, input.name, ones ? 1 : 0, 0.3)
                                               : random_ids(type, input.name.size(), vocabulary);
  }
  if (tensors.contains("segments")) {  // two documents a row, then padding
    HostTensor &segments = tensors["segments"], &positions = tensors["positions"], &labels = tensors["labels"];
    const std::int64_t seq = segments.shape()[1];
    for (std::int64_t i = 0; i < segments.size(); ++i) {
      const std::int64_t at = i % seq;
      segments.set(i, at < 3 ? 1 : at < seq - 1 ? 2 : 0);
      positions.set(i, static_cast<double>(at < 3 ? at : at < seq - 1 ? at - 3 : 0));
      if (at == 2 || at >= seq - 2) labels.set(i, -1);
    }
  }
  return tensors;
}

Tensors outputs_of(const Graph& graph, const Tensors& given) {
  std::vector<HostTensor> inputs;
  for (const GraphInput& input : graph.inputs()) inputs.push_back(given.at(input.name));
  const std::vector<HostTensor> results = evaluate(graph, inputs);
  Tensors outputs;
  for (std::size_t i = 0; i < results.size(); ++i) outputs[graph.outputs()[i].name] = results[i];
  return outputs;
}

Tensors gradients_of(const Graph& loss, const Tensors& given, const RecomputePolicy& policy) {
  const Differentiated parts = differentiate(loss, "loss", policy);
  verify(parts.forward);
  verify(parts.backward);
  Tensors all = given;
  all.merge(outputs_of(parts.forward, given));
  return outputs_of(parts.backward, all);
}

void expect_gradients(const Graph& loss, std::int64_t vocabulary) {
  const Tensors given = inputs_of(loss, vocabulary);
  const Tensors gradients = gradients_of(loss, given, {});
  std::size_t trainable = 0;
  for (const GraphInput& input : loss.inputs()) {
    if (!input.parameter) continue;
    const auto found = gradients.find("gradient." + input.name);
    ASSERT_EQ(found != gradients.end(), input.parameter->trainable) << input.name;
    if (found == gradients.end()) continue;
    ++trainable;
    const HostTensor direction = random_tensor(loss.type(input.value), input.name + " direction", 0, 1);
    constexpr double kStep = 1e-5;
    double slope = 0, along = 0;
    for (const double sign : {1.0, -1.0}) {
      Tensors moved = given;
      for (std::int64_t i = 0; i < direction.size(); ++i)
        moved[input.name].set(i, given.at(input.name).at(i) + sign * kStep * direction.at(i));
      slope += sign * outputs_of(loss, moved).at("loss").at(0) / (2 * kStep);
    }
    for (std::int64_t i = 0; i < direction.size(); ++i) along += direction.at(i) * found->second.at(i);
    EXPECT_NEAR(along, slope, 1e-7 * (1 + std::abs(slope))) << input.name;
  }
  EXPECT_GT(trainable, 0U);
  using Kind = RecomputePolicy::Kind;
  for (const RecomputePolicy& policy : {RecomputePolicy{Kind::attention, {}}, RecomputePolicy{Kind::block, {}},
                                        RecomputePolicy{Kind::named, {"attn.o", "mlp.hidden"}}}) {
    EXPECT_EQ(gradients_of(loss, given, policy), gradients) << static_cast<int>(policy.kind);
  }
}

DecoderConfig tiny() {
  DecoderConfig config;
  config.layers = 3;
  config.width = 12;
  config.heads = 3;
  config.mlp = 20;
  config.vocabulary = 11;
  config.context = 8;
  config.dropout = 0.2;
  return config;
}

TEST(DecoderGradient, tied_with_dropout) { expect_gradients(in_f64(make_decoder(tiny())->loss({2, 8}, true)), 11); }

TEST(DecoderGradient, untied_rms_rotary_grouped_without_biases) {
  DecoderConfig config = tiny();
  config.tied = false;
  config.bias = false;
  config.kv_heads = 1;
  config.norm = ModelSpec::Norm::rms;
  config.activation = ModelSpec::Activation::silu;
  config.position = ModelSpec::Position::rotary;
  expect_gradients(in_f64(make_decoder(config)->loss({2, 8}, true)), 11);
}

TEST(DecoderGradient, llama_with_stretched_positions) {
  DecoderConfig config = tiny();
  config.heads = 4;
  config.kv_heads = 2;
  config.head = 6;
  config.gated = true;
  config.tied = false;
  config.bias = false;
  config.norm = ModelSpec::Norm::rms;
  config.activation = ModelSpec::Activation::silu;
  config.position = ModelSpec::Position::rotary;
  config.rope_scaling = RotaryScaling{8, 1, 4, 12};
  expect_gradients(in_f64(make_decoder(config)->loss({2, 8}, true)), 11);
}

TEST(DecoderGradient, parallel_blocks_of_squared_relu) {
  DecoderConfig config = tiny();
  config.parallel = true;
  config.kv_heads = 1;
  config.activation = ModelSpec::Activation::relu2;
  config.position = ModelSpec::Position::none;
  expect_gradients(in_f64(make_decoder(config)->loss({2, 8}, true)), 11);
}

TEST(DecoderGradient, in_a_window) {
  DecoderConfig config = tiny();
  config.window = 2;
  expect_gradients(in_f64(make_decoder(config)->loss({2, 8}, true)), 11);
}

TEST(DecoderGradient, frozen_base_with_adapters) {
  DecoderConfig config = tiny();
  config.lora.rank = 2;
  config.lora.scale = 0.5;
  expect_gradients(in_f64(make_decoder(config)->loss({2, 8}, true)), 11);
}

TEST(DecoderGradient, unrolled) {
  DecoderConfig config = tiny();
  config.unrolled = true;
  expect_gradients(in_f64(make_decoder(config)->loss({2, 8}, true)), 11);
}

TEST(MlpGradient, regression_and_classes) {
  MlpConfig config;
  config.inputs = 5;
  config.outputs = 3;
  config.hidden = {4, 7};
  config.activation = ModelSpec::Activation::gelu;
  config.dropout = 0.2;
  expect_gradients(in_f64(make_mlp(config)->loss({3, 0}, true)), 3);
  config.loss = ModelSpec::Loss::cross_entropy;
  expect_gradients(in_f64(make_mlp(config)->loss({3, 0}, true)), 3);
}

}  // namespace
}  // namespace systole
