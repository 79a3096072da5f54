#pragma once
// For tests: a golden Hugging Face model as the GGUF file that llama.cpp's convert_hf_to_gguf.py makes of it, written
// without the reader's code: names by hand, a Llama's rows of q and k interleaved, GPT-2's linear layers turned.

#include <cmath>
#include <functional>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "execute/checkpoint/safetensors.h"
#include "execute/weights/testing/gguf_writer.h"
#include "execute/weights/weight_files.h"
#include "ground/base/document.h"

namespace systole {

inline std::string gguf_name_of(std::string name) {
  const std::vector<std::pair<std::string, std::string>> replaced = {{"transformer.", ""},
                                                                     {"model.", ""},
                                                                     {"embed_tokens", "token_embd"},
                                                                     {"wte", "token_embd"},
                                                                     {"wpe", "position_embd"},
                                                                     {"layers.", "blk."},
                                                                     {"h.", "blk."},
                                                                     {"input_layernorm", "attn_norm"},
                                                                     {"post_attention_layernorm", "ffn_norm"},
                                                                     {"self_attn.q_proj", "attn_q"},
                                                                     {"self_attn.k_proj", "attn_k"},
                                                                     {"self_attn.v_proj", "attn_v"},
                                                                     {"self_attn.o_proj", "attn_output"},
                                                                     {"mlp.gate_proj", "ffn_gate"},
                                                                     {"mlp.up_proj", "ffn_up"},
                                                                     {"mlp.down_proj", "ffn_down"},
                                                                     {"ln_1", "attn_norm"},
                                                                     {"ln_2", "ffn_norm"},
                                                                     {"attn.c_attn", "attn_qkv"},
                                                                     {"attn.c_proj", "attn_output"},
                                                                     {"mlp.c_fc", "ffn_up"},
                                                                     {"mlp.c_proj", "ffn_down"},
                                                                     {"ln_f", "output_norm"},
                                                                     {"lm_head", "output"}};
  for (const auto& [theirs, gguf] : replaced) {
    const std::size_t at = name.find(theirs);
    const bool starts = theirs.ends_with('.') ? at == 0 : at != std::string::npos;
    if (starts) name.replace(at, theirs.size(), gguf);
  }
  return name == "norm.weight" ? "output_norm.weight" : name;
}

// Rows of [rows, width], `element` bytes each, in the order of `from`.
inline std::string reordered(const std::string& bytes, std::size_t rows,
                             const std::function<std::size_t(std::size_t)>& from) {
  const std::size_t row = bytes.size() / rows;
  std::string result;
  for (std::size_t r = 0; r < rows; ++r) result += bytes.substr(from(r) * row, row);
  return result;
}

inline std::string turned(const std::string& bytes, std::size_t rows, std::size_t columns) {
  const std::size_t element = bytes.size() / (rows * columns);
  std::string result;
  for (std::size_t c = 0; c < columns; ++c)
    for (std::size_t r = 0; r < rows; ++r) result += bytes.substr((r * columns + c) * element, element);
  return result;
}

// The tensors of the folder; `store` is rooted at it.
inline void write_tensors(Store& store, const Node& config, bool llama, GgufWriter& file) {
  const WeightFiles files = WeightFiles::open(store, "").value();
  for (const auto& [name, tensor] : files.tensors()) {
    std::string bytes(static_cast<std::size_t>(bytes_of(tensor.dtype, tensor.shape).count()), '\0');
    files.read_elements(name, 0, std::as_writable_bytes(std::span(bytes.data(), bytes.size()))).value();
    Shape shape = tensor.shape;
    const std::string gguf = gguf_name_of(name);
    if (llama && (gguf.ends_with("attn_q.weight") || gguf.ends_with("attn_k.weight"))) {
      const auto head = static_cast<std::size_t>(config.find("head_dim")->as_int().value());
      bytes = reordered(bytes, static_cast<std::size_t>(shape[0]), [head](std::size_t row) {
        const std::size_t in = row % head;  // 0 1 2 3 are rows 0, head / 2, 1, head / 2 + 1
        return row - in + in / 2 + in % 2 * (head / 2);
      });
    }
    const bool linear = gguf.starts_with("blk.") && shape.size() == 2;
    if (!llama && linear) {
      bytes = turned(bytes, static_cast<std::size_t>(shape[0]), static_cast<std::size_t>(shape[1]));
      std::swap(shape[0], shape[1]);
    }
    file.tensor(gguf, shape, tensor.dtype == DType::bf16 ? 30 : 0, bytes);
  }
}

// The factors of rotary positions that are scaled as in Llama 3.1.
inline void write_factors(const Node& rope, std::int64_t head, GgufWriter& file) {
  const auto number = [&](const char* key) { return rope.find(key)->as_double().value(); };
  const double factor = number("factor"), low = number("low_freq_factor"), high = number("high_freq_factor");
  const double context = number("original_max_position_embeddings");
  std::string bytes;
  for (std::int64_t i = 0; i < head; i += 2) {
    const double wavelength =
        2 * std::numbers::pi * std::pow(number("rope_theta"), static_cast<double>(i) / static_cast<double>(head));
    double scaled = factor;
    if (wavelength < context / high) {
      scaled = 1;
    } else if (wavelength <= context / low) {
      const double smooth = (context / wavelength - low) / (high - low);
      scaled = 1 / ((1 - smooth) / factor + smooth);
    }
    bytes += GgufWriter::raw(static_cast<float>(scaled));
  }
  file.tensor("rope_freqs.weight", {head / 2}, 0, bytes);
  file.u32("llama.rope.scaling.original_context_length", static_cast<std::uint32_t>(context));
}

inline void write_tokenizer(const Node& tokenizer, std::size_t size, bool llama, GgufWriter& file) {
  std::vector<std::string> tokens(size), merges;
  std::vector<std::int32_t> types(size, 5);
  for (std::size_t i = 0; i < size; ++i) tokens[i] = fmt::format("[PAD{}]", i);
  for (const Node::Entry& entry : tokenizer.find("model")->find("vocab")->entries()) {
    const auto id = static_cast<std::size_t>(entry.value.as_int().value());
    tokens[id] = entry.key;
    types[id] = id < 2 ? 3 : 1;  // <s> and </s>
  }
  for (const Node& merge : tokenizer.find("model")->find("merges")->items())
    merges.push_back(merge.items()[0].text() + " " + merge.items()[1].text());
  file.text("tokenizer.ggml.model", "gpt2")
      .text("tokenizer.ggml.pre", llama ? "llama-bpe" : "gpt-2")
      .texts("tokenizer.ggml.tokens", tokens)
      .i32s("tokenizer.ggml.token_type", types)
      .texts("tokenizer.ggml.merges", merges)
      .u32("tokenizer.ggml.bos_token_id", 0)
      .u32("tokenizer.ggml.eos_token_id", 1)
      .flag("tokenizer.ggml.add_bos_token", llama);
}

// A file of the golden model in `folder`: a llama or a gpt2.
inline std::string gguf_of_folder(const std::string& folder, const std::string& chat_template = "") {
  const std::unique_ptr<Store> store = open_posix_store(folder).value();
  const Node config = parse_json(read_text(*store, "config.json").value(), "config.json").value();
  const Node tokenizer = parse_json(read_text(*store, "tokenizer.json").value(), "tokenizer.json").value();
  const bool llama = config.find("model_type")->text() == "llama";
  const std::string prefix = llama ? "llama." : "gpt2.";
  const auto integer = [&](const char* key) { return config.find(key)->as_int().value(); };
  GgufWriter file;
  const auto add = [&](const char* key, std::int64_t value) {
    file.u32(prefix + key, static_cast<std::uint32_t>(value));
  };
  file.text("general.architecture", llama ? "llama" : "gpt2");
  add("block_count", integer(llama ? "num_hidden_layers" : "n_layer"));
  add("embedding_length", integer(llama ? "hidden_size" : "n_embd"));
  add("context_length", integer(llama ? "max_position_embeddings" : "n_positions"));
  add("attention.head_count", integer(llama ? "num_attention_heads" : "n_head"));
  add("feed_forward_length", llama ? integer("intermediate_size") : 4 * integer("n_embd"));
  if (llama) {
    const Node& rope = *config.find("rope_parameters");
    add("attention.head_count_kv", integer("num_key_value_heads"));
    for (const char* key : {"attention.key_length", "attention.value_length", "rope.dimension_count"})
      add(key, integer("head_dim"));
    file.f32("llama.attention.layer_norm_rms_epsilon",
             static_cast<float>(config.find("rms_norm_eps")->as_double().value()));
    file.f32("llama.rope.freq_base", static_cast<float>(rope.find("rope_theta")->as_double().value()));
    if (rope.find("rope_type")->text() == "llama3") write_factors(rope, integer("head_dim"), file);
  } else {
    file.f32("gpt2.attention.layer_norm_epsilon",
             static_cast<float>(config.find("layer_norm_epsilon")->as_double().value()));
  }
  write_tokenizer(tokenizer, static_cast<std::size_t>(integer("vocab_size")), llama, file);
  write_tensors(*store, config, llama, file);
  if (!chat_template.empty()) file.text("tokenizer.chat_template", chat_template);
  return file.finish();
}

}  // namespace systole
