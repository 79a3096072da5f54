#pragma once
// For tests: small decoders that together cover all choices, and rows for them.

#include "describe/models/decoder/decoder.h"
#include "describe/models/testing/tiny_inputs.h"

namespace systole {

inline DecoderSpec tiny_decoder() {
  DecoderSpec config;
  config.layers = 3;
  config.width = 12;
  config.heads = 3;
  config.mlp = 20;
  config.vocabulary = 11;
  config.context = 24;
  return config;
}

// For each choice the alternative to GPT-2's.
inline DecoderSpec modern_decoder() {
  DecoderSpec config = tiny_decoder();
  config.kv_heads = 1;
  config.norm = Norm::rms;
  config.activation = Activation::silu;
  config.position = Position::rotary;
  config.bias = false;
  config.tied = false;
  return config;
}

// All choices of llama, with a head size other than width / heads, and frequencies of all three kinds of scaling.
inline DecoderSpec llama_decoder() {
  DecoderSpec config = modern_decoder();
  config.family = DecoderSpec::Family::llama;
  config.heads = 4;
  config.kv_heads = 2;
  config.head = 6;
  config.gated = true;
  config.theta = 50;
  config.rope_scaling = {RopeScaling::Kind::llama3, 8, 1, 4, 12};
  config.eps = 1e-6;
  return config;
}

// The choices of PaLM and Nemotron: one norm for both parts of a block, one key head, squared relu.
inline DecoderSpec parallel_decoder() {
  DecoderSpec config = tiny_decoder();
  config.kv_heads = 1;
  config.parallel_blocks = true;
  config.activation = Activation::relu2;
  config.position = Position::none;
  config.bias = false;
  return config;
}

// Mistral: a llama with a window of attention, smaller than a bucket of prefill.
inline DecoderSpec windowed_decoder() {
  DecoderSpec config = llama_decoder();
  config.window = 4;
  return config;
}

// Mixtral: a llama with top-2 of four experts; here with capacity for all.
inline DecoderSpec mixture_decoder() {
  DecoderSpec config = llama_decoder();
  config.mlp = 8;
  config.moe.experts = 4;
  config.moe.dropless = true;
  return config;
}

// DeepSeek: many small experts, gates not normalized, shared experts; groups of half a row, some tokens dropped.
inline DecoderSpec shared_experts_decoder() {
  DecoderSpec config = mixture_decoder();
  config.moe.experts = 6;
  config.moe.top_k = 3;
  config.moe.dropless = false;
  config.moe.capacity_factor = 1;
  config.moe.group = 4;
  config.moe.shared_experts = 2;
  config.moe.normalize = false;
  config.moe.balance = 0.5;
  return config;
}

// Qwen3: a mixture with norms on queries and keys.
inline DecoderSpec normed_heads_decoder() {
  DecoderSpec config = mixture_decoder();
  config.qk_norm = true;
  return config;
}

// DeepSeek-V3: latent attention, a first layer without experts, sigmoid routers.
inline DecoderSpec latent_decoder() {
  DecoderSpec config = shared_experts_decoder();
  config.kv_heads = 0;
  config.mla = {.q_rank = 7, .kv_rank = 5, .nope = 4, .rope = 2, .value = 3};
  config.moe.shared_experts = 1;
  config.moe.normalize = true;
  config.moe.scores = ExpertsSpec::Scores::sigmoid;
  config.moe.scale = 2.5;
  config.moe.dense_layers = 1;
  config.moe.dense_mlp = 10;
  return config;
}

// Llama 4: every second layer has experts.
inline DecoderSpec interleaved_decoder() {
  DecoderSpec config = shared_experts_decoder();
  config.layers = 4;
  config.moe.shared_experts = 1;
  config.moe.every = 2;
  config.moe.dense_mlp = 10;
  return config;
}

// Decoders that generate; and all decoders.
inline std::vector<DecoderSpec> serving_decoders() {
  return {tiny_decoder(),     modern_decoder(),  llama_decoder(),          parallel_decoder(),
          windowed_decoder(), mixture_decoder(), shared_experts_decoder(), normed_heads_decoder()};
}
inline std::vector<DecoderSpec> all_decoders() {
  std::vector<DecoderSpec> all = serving_decoders();
  all.push_back(latent_decoder());
  all.push_back(interleaved_decoder());
  return all;
}

// Rows of one document each; a token's label is its successor, the last label is random.
inline std::map<std::string, HostTensor> one_document(std::int64_t rows, std::int64_t sequence_length,
                                                      std::int64_t vocabulary) {
  const Type ids(DType::i32, {rows, sequence_length});
  std::map<std::string, HostTensor> data{{"tokens", random_ids(ids, 1, vocabulary)},
                                         {"labels", random_ids(ids, 2, vocabulary)},
                                         {"segments", HostTensor(DType::i32, ids.shape)},
                                         {"positions", HostTensor(DType::i32, ids.shape)},
                                         {"seed", scalar(5)},
                                         {"step", scalar(6)},
                                         {"row", scalar(0)}};
  for (std::int64_t i = 0; i < rows * sequence_length; ++i) {
    data["segments"].set(i, 1);
    data["positions"].set(i, static_cast<double>(i % sequence_length));
    if ((i + 1) % sequence_length != 0) data["labels"].set(i, data["tokens"].at(i + 1));
  }
  return data;
}

}  // namespace systole
