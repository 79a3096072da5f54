#pragma once
// For tests: small decoders, one for each way in which they differ, and rows for them.

#include "describe/models/decoder/decoder.h"
#include "describe/models/testing/tiny_inputs.h"

namespace systole {

inline DecoderConfig tiny_decoder() {
  DecoderConfig config;
  config.layers = 3;
  config.width = 12;
  config.heads = 3;
  config.mlp = 20;
  config.vocabulary = 11;
  config.context = 24;
  return config;
}

// Each choice other than GPT-2's.
inline DecoderConfig modern_decoder() {
  DecoderConfig config = tiny_decoder();
  config.kv_heads = 1;
  config.norm = ModelSpec::Norm::rms;
  config.activation = ModelSpec::Activation::silu;
  config.position = ModelSpec::Position::rotary;
  config.bias = false;
  config.tied = false;
  return config;
}

// Every choice of llama's, at a head that is not width / heads and with frequencies of all three kinds of stretching.
inline DecoderConfig llama_decoder() {
  DecoderConfig config = modern_decoder();
  config.family = "llama";
  config.heads = 4;
  config.kv_heads = 2;
  config.head = 6;
  config.gated = true;
  config.theta = 50;
  config.rope_scaling = RotaryScaling{8, 1, 4, 12};
  config.eps = 1e-6;
  return config;
}

// PaLM's and Nemotron's choices together: one norm for both parts of a block, one key head, squared relu.
inline DecoderConfig parallel_decoder() {
  DecoderConfig config = tiny_decoder();
  config.kv_heads = 1;
  config.parallel = true;
  config.activation = ModelSpec::Activation::relu2;
  config.position = ModelSpec::Position::none;
  config.bias = false;
  return config;
}

// Mistral's: a llama that looks back so far and no further, less than a bucket of prefill.
inline DecoderConfig windowed_decoder() {
  DecoderConfig config = llama_decoder();
  config.window = 4;
  return config;
}

// Mixtral's: a llama whose tokens go to two experts of four; here with room for all.
inline DecoderConfig mixture_decoder() {
  DecoderConfig config = llama_decoder();
  config.mlp = 8;
  config.experts.count = 4;
  config.experts.dropless = true;
  return config;
}

// DeepSeek's: many small experts, gates as they are, shared experts; groups of half a row, some tokens dropped.
inline DecoderConfig shared_experts_decoder() {
  DecoderConfig config = mixture_decoder();
  config.experts.count = 6;
  config.experts.top_k = 3;
  config.experts.dropless = false;
  config.experts.capacity_factor = 1;
  config.experts.group = 4;
  config.experts.shared = 2;
  config.experts.normalized = false;
  config.experts.balance = 0.5;
  return config;
}

// Qwen3's: a mixture whose queries and keys go through norms.
inline DecoderConfig normed_heads_decoder() {
  DecoderConfig config = mixture_decoder();
  config.qk_norm = true;
  return config;
}

// DeepSeek-V3's: latent attention, a first layer without experts, routers with a sigmoid.
inline DecoderConfig latent_decoder() {
  DecoderConfig config = shared_experts_decoder();
  config.kv_heads = 0;
  config.latent = {.q_rank = 7, .kv_rank = 5, .nope = 4, .rope = 2, .value = 3};
  config.experts.shared = 1;
  config.experts.normalized = true;
  config.experts.scores = ModelSpec::Experts::Scores::sigmoid;
  config.experts.scale = 2.5;
  config.experts.dense_layers = 1;
  config.experts.dense_mlp = 10;
  return config;
}

// Llama 4's: of two layers the second has experts.
inline DecoderConfig interleaved_decoder() {
  DecoderConfig config = shared_experts_decoder();
  config.layers = 4;
  config.experts.shared = 1;
  config.experts.every = 2;
  config.experts.dense_mlp = 10;
  return config;
}

// Those that generate; and all.
inline std::vector<DecoderConfig> serving_decoders() {
  return {tiny_decoder(),     modern_decoder(),  llama_decoder(),          parallel_decoder(),
          windowed_decoder(), mixture_decoder(), shared_experts_decoder(), normed_heads_decoder()};
}
inline std::vector<DecoderConfig> all_decoders() {
  std::vector<DecoderConfig> all = serving_decoders();
  all.push_back(latent_decoder());
  all.push_back(interleaved_decoder());
  return all;
}

// Rows of one document each, each token labelled with its successor, random at the end.
inline std::map<std::string, HostTensor> one_document(std::int64_t rows, std::int64_t seq, std::int64_t vocabulary) {
  const Type ids(DType::i32, {rows, seq});
  std::map<std::string, HostTensor> data{{"tokens", random_ids(ids, 1, vocabulary)},
                                         {"labels", random_ids(ids, 2, vocabulary)},
                                         {"segments", HostTensor(DType::i32, ids.shape)},
                                         {"positions", HostTensor(DType::i32, ids.shape)},
                                         {"seed", scalar(5)},
                                         {"step", scalar(6)},
                                         {"row", scalar(0)}};
  for (std::int64_t i = 0; i < rows * seq; ++i) {
    data["segments"].set(i, 1);
    data["positions"].set(i, static_cast<double>(i % seq));
    if ((i + 1) % seq != 0) data["labels"].set(i, data["tokens"].at(i + 1));
  }
  return data;
}

}  // namespace systole
