#pragma once
// For tests: a small Llama as a GGUF file whose matrices are Q4_1, or Q4_0, and its table of tokens f32, as llama.cpp's
// own files of four bits are (there the table has eight bits). The tokenizer is that of the golden Llama.

#include <string>

#include "execute/weights/testing/gguf_of_folder.h"
#include "ground/tensor/int4.h"

namespace systole {

// Made-up blocks for `count` numbers, whose values are near normal ones of deviation 0.1.
inline std::string four_bit_blocks(std::int64_t count, bool minima, std::uint32_t& state) {
  const auto next = [&] {
    state = state * 1664525U + 1013904223U;
    return state >> 16;
  };
  const auto half = [](double value) { return GgufWriter::raw(to_half(static_cast<float>(value))); };
  std::string bytes;
  for (std::int64_t block = 0; block < count / 32; ++block) {
    const double scale = 0.02 + 0.01 * (next() % 100) / 100.0;
    bytes += half(minima ? scale : -scale);  // a Q4_0's is negative where its largest value is positive
    if (minima) bytes += half(-7.6 * scale);
    for (int i = 0; i < 16; ++i) bytes += static_cast<char>(next());
  }
  return bytes;
}

inline std::string gguf_of_four_bits(const std::string& golden_llama, bool minima) {
  constexpr std::int64_t kWidth = 64, kHead = 16, kHeads = 4, kKvHeads = 2, kMlp = 96, kTokens = 304, kLayers = 2;
  const std::unique_ptr<Store> store = open_posix_store(golden_llama).value();
  GgufWriter file;
  const auto add = [&](const char* key, std::int64_t value) {
    file.u32(std::string("llama.") + key, static_cast<std::uint32_t>(value));
  };
  file.text("general.architecture", "llama");
  add("block_count", kLayers);
  add("embedding_length", kWidth);
  add("context_length", 128);
  add("attention.head_count", kHeads);
  add("attention.head_count_kv", kKvHeads);
  add("feed_forward_length", kMlp);
  for (const char* key : {"attention.key_length", "attention.value_length", "rope.dimension_count"}) add(key, kHead);
  file.f32("llama.attention.layer_norm_rms_epsilon", 1e-5F).f32("llama.rope.freq_base", 10000);
  write_tokenizer(parse_json(read_text(*store, "tokenizer.json").value(), "tokenizer.json").value(), kTokens, true,
                  file);
  std::uint32_t state = 7;
  const auto numbers = [&](std::int64_t count, float base, float spread) {
    std::string bytes;
    for (std::int64_t i = 0; i < count; ++i) {
      state = state * 1664525U + 1013904223U;
      bytes += GgufWriter::raw(base + spread * (static_cast<float>(state >> 16) / 32768 - 1));
    }
    return bytes;
  };
  const auto matrix = [&](const std::string& name, std::int64_t out, std::int64_t in) {
    file.tensor(name, {out, in}, minima ? 3 : 2, four_bit_blocks(out * in, minima, state));
  };
  file.tensor("token_embd.weight", {kTokens, kWidth}, 0, numbers(kTokens * kWidth, 0, 1));
  for (std::int64_t layer = 0; layer < kLayers; ++layer) {
    const std::string block = fmt::format("blk.{}.", layer);
    file.tensor(block + "attn_norm.weight", {kWidth}, 0, numbers(kWidth, 1, 0.1F));
    matrix(block + "attn_q.weight", kHeads * kHead, kWidth);
    matrix(block + "attn_k.weight", kKvHeads * kHead, kWidth);
    matrix(block + "attn_v.weight", kKvHeads * kHead, kWidth);
    matrix(block + "attn_output.weight", kWidth, kHeads * kHead);
    file.tensor(block + "ffn_norm.weight", {kWidth}, 0, numbers(kWidth, 1, 0.1F));
    matrix(block + "ffn_gate.weight", kMlp, kWidth);
    matrix(block + "ffn_up.weight", kMlp, kWidth);
    matrix(block + "ffn_down.weight", kWidth, kMlp);
  }
  file.tensor("output_norm.weight", {kWidth}, 0, numbers(kWidth, 1, 0.1F));
  return file.finish();
}

}  // namespace systole
