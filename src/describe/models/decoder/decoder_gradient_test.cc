// Whole tiny models: gradients against central differences in f64 along random directions, parameter by parameter;
// every recompute policy gives the same bits.

#include <gtest/gtest.h>

#include "describe/models/decoder/testing/tiny_decoder.h"
#include "describe/models/mlp/mlp.h"
#include "describe/models/testing/gradient_check.h"

namespace systole {
namespace {

Tensors inputs_of(const Graph& loss, std::int64_t vocabulary) {
  Tensors tensors;
  for (const GraphInput& input : loss.inputs()) {
    const Type& type = loss.type(input.value);
    const bool ones = input.parameter && input.parameter->init.kind == Init::Kind::ones;
    tensors[input.name] = is_float(type.dtype) ? random_tensor(type, input.name, ones ? 1 : 0, 0.3)
                                               : random_ids(type, input.name.size(), vocabulary);
  }
  if (tensors.contains("segments")) {  // two documents per row, then padding
    HostTensor &segments = tensors["segments"], &positions = tensors["positions"], &labels = tensors["labels"];
    const std::int64_t sequence_length = segments.shape()[1];
    for (std::int64_t i = 0; i < segments.size(); ++i) {
      const std::int64_t at = i % sequence_length;
      segments.set(i, at < 3 ? 1 : at < sequence_length - 1 ? 2 : 0);
      positions.set(i, static_cast<double>(at < 3 ? at : at < sequence_length - 1 ? at - 3 : 0));
      if (at == 2 || at >= sequence_length - 2) labels.set(i, -1);
    }
  }
  return tensors;
}

void expect_gradients(const Graph& loss, std::int64_t vocabulary) {
  expect_gradients(loss, inputs_of(loss, vocabulary));
}

// The loss of rows of 8 tokens, with dropout.
Graph loss_of(DecoderSpec config, bool unrolled = false) {
  config.context = 8;
  config.dropout = 0.2;
  return in_f64(make_decoder(config, unrolled)->loss({2, 8}, true));
}

TEST(DecoderGradient, tied_with_dropout) { expect_gradients(loss_of(tiny_decoder()), 11); }
TEST(DecoderGradient, untied_rms_rotary_grouped_without_biases) { expect_gradients(loss_of(modern_decoder()), 11); }
TEST(DecoderGradient, llama_with_stretched_positions) { expect_gradients(loss_of(llama_decoder()), 11); }

TEST(DecoderGradient, parallel_blocks_of_squared_relu) {
  DecoderSpec config = parallel_decoder();
  for (const bool bias : {false, true}) {
    config.bias = bias;
    expect_gradients(loss_of(config), 11);
  }
}

TEST(DecoderGradient, in_a_window) {
  DecoderSpec config = tiny_decoder();
  config.window = 2;
  expect_gradients(loss_of(config), 11);
}

TEST(DecoderGradient, mixture_of_experts) {
  expect_gradients(loss_of(mixture_decoder()), 11);
  expect_gradients(loss_of(shared_experts_decoder()), 11);
  expect_gradients(loss_of(normed_heads_decoder()), 11);
}

TEST(DecoderGradient, latent_attention_and_a_first_layer_without_experts) {
  for (const std::int64_t q_rank : {7, 0}) {  // DeepSeek-V3's, V2-Lite's
    DecoderSpec config = latent_decoder();
    config.mla.q_rank = q_rank;
    const Graph loss = loss_of(config);
    Tensors tensors = inputs_of(loss, 11);
    // With embeddings as small as the others, nested norms are too nonlinear for the differences.
    HostTensor& embed = tensors["embed.tokens"];
    for (std::int64_t i = 0; i < embed.size(); ++i) embed.set(i, 3 * embed.at(i));
    expect_gradients(loss, tensors);
  }
}

TEST(DecoderGradient, frozen_base_with_adapters) {
  DecoderSpec config = tiny_decoder();
  config.adapters.rank = 2;
  config.adapters.scale = 0.5;
  expect_gradients(loss_of(config), 11);
}

TEST(DecoderGradient, unrolled) { expect_gradients(loss_of(tiny_decoder(), true), 11); }

TEST(MlpGradient, regression_and_classes) {
  MlpSpec config;
  config.inputs = 5;
  config.outputs = 3;
  config.hidden = {4, 7};
  config.activation = Activation::gelu;
  config.dropout = 0.2;
  expect_gradients(in_f64(make_mlp(config)->loss({3, 0}, true)), 3);
  expect_gradients(in_f64(make_mlp(config)->loss({.rows = 3, .padded = true}, true)), 3);
  config.loss = Loss::cross_entropy;
  expect_gradients(in_f64(make_mlp(config)->loss({3, 0}, true)), 3);
}

}  // namespace
}  // namespace systole
