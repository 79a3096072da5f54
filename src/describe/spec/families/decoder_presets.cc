// model.preset of gpt and llama: published models as defaults. The source of the sizes is given beside each model.
// describe/models/presets_test.cc compares the parameter counts with the published ones. docs/concepts/models.md lists
// where a published model differs from its preset.
#include "describe/spec/families/families.h"

namespace systole {
namespace {

using Values = std::vector<PresetValue>;

Preset preset(const char* name, const char* family, std::int64_t layers, std::int64_t width, std::int64_t heads,
              std::int64_t vocabulary, std::int64_t context, const Values& more) {
  Preset p{name, {{"model.family", family}}};
  const std::pair<const char*, std::int64_t> sizes[] = {{"model.layers", layers},
                                                        {"model.width", width},
                                                        {"model.heads", heads},
                                                        {"model.vocabulary", vocabulary},
                                                        {"model.context", context}};
  for (const auto& [key, size] : sizes) p.values.push_back({key, std::to_string(size)});
  for (const PresetValue& value : more) p.values.push_back(value);
  return p;
}

// Feed-forward width 4 × width; all else as the family's defaults.
Preset gpt(const char* name, std::int64_t layers, std::int64_t width, std::int64_t heads, std::int64_t vocabulary,
           std::int64_t context, const char* activation) {
  return preset(name, "gpt", layers, width, heads, vocabulary, context,
                {{"model.mlp_ratio", "4"},
                 {"model.norm", "layer"},
                 {"model.position", "learned"},
                 {"model.activation", activation},
                 {"model.bias", "true"},
                 {"model.tied", "true"}});
}

// Radford et al., "Language Models are Unsupervised Multitask Learners", 2019, table 2, and the hyperparameters
// released with the weights (openai/gpt-2, hparams.json).
void add_gpt2(std::vector<Preset>& all) {
  const auto add = [&](const char* name, std::int64_t layers, std::int64_t width, std::int64_t heads) {
    all.push_back(gpt(name, layers, width, heads, 50257, 1024, "gelu_tanh"));
  };
  add("gpt2-124m", 12, 768, 12);
  add("gpt2-355m", 24, 1024, 16);
  add("gpt2-774m", 36, 1280, 20);
  add("gpt2-1558m", 48, 1600, 25);
}

// Brown et al., arXiv:2005.14165, table 2.1.
void add_gpt3(std::vector<Preset>& all) { all.push_back(gpt("gpt3-175b", 96, 12288, 96, 50257, 2048, "gelu_tanh")); }

// mosaicml/llm-foundry, scripts/train/yamls/pretrain/mpt-*.yaml, as in scripts/train/benchmarking: learned positions,
// 2,048 tokens per row.
void add_mpt(std::vector<Preset>& all) {
  const auto add = [&](const char* name, std::int64_t layers, std::int64_t width, std::int64_t heads) {
    all.push_back(gpt(name, layers, width, heads, 50368, 2048, "gelu"));
  };
  add("mpt-125m", 12, 768, 12);
  add("mpt-350m", 24, 1024, 16);
  add("mpt-760m", 24, 1536, 12);
  add("mpt-1b", 24, 2048, 16);
  add("mpt-3b", 32, 2560, 20);
  add("mpt-7b", 32, 4096, 32);
  add("mpt-13b", 40, 5120, 40);
  add("mpt-30b", 48, 7168, 56);
  add("mpt-70b", 80, 8192, 64);
}

struct Llama {
  const char* name;
  std::int64_t layers, width, heads, kv_heads, mlp, vocabulary, context;
  const char* theta = "10000";
  const char* factor = "";  // scaling of Llama 3.1; empty: none
  const char* tied = "false";
  const char* eps = "1e-5";
};

Preset llama(const Llama& m) {
  Preset p = preset(m.name, "llama", m.layers, m.width, m.heads, m.vocabulary, m.context,
                    {{"model.kv_heads", std::to_string(m.kv_heads)},
                     {"model.mlp", std::to_string(m.mlp)},
                     {"model.theta", m.theta},
                     {"model.eps", m.eps},
                     {"model.tied", m.tied}});
  if (*m.factor == '\0') return p;
  p.values.push_back({"model.rope_scaling.kind", "llama3"});
  p.values.push_back({"model.rope_scaling.factor", m.factor});
  return p;
}

// From config.json beside the released weights (meta-llama, codellama, TinyLlama and mistralai on huggingface.co).
// Papers: Touvron et al., arXiv:2307.09288; Rozière et al., arXiv:2308.12950; Grattafiori et al., arXiv:2407.21783;
// Zhang et al., arXiv:2401.02385; Jiang et al., arXiv:2310.06825.
void add_llama(std::vector<Preset>& all) {
  const Llama models[] = {
      {"tinyllama-1.1b", 22, 2048, 32, 4, 5632, 32000, 2048},
      {"llama2-7b", 32, 4096, 32, 32, 11008, 32000, 4096},
      {"llama2-13b", 40, 5120, 40, 40, 13824, 32000, 4096},
      {"llama2-70b", 80, 8192, 64, 8, 28672, 32000, 4096},
      {"codellama-34b", 48, 8192, 64, 8, 22016, 32000, 16384, "1000000"},
      {"llama3-8b", 32, 4096, 32, 8, 14336, 128256, 8192, "500000"},
      {"llama3-70b", 80, 8192, 64, 8, 28672, 128256, 8192, "500000"},
      {"llama3.1-8b", 32, 4096, 32, 8, 14336, 128256, 131072, "500000", "8"},
      {"llama3.1-70b", 80, 8192, 64, 8, 28672, 128256, 131072, "500000", "8"},
      {"llama3.1-405b", 126, 16384, 128, 8, 53248, 128256, 131072, "500000", "8"},
      {"llama3.2-1b", 16, 2048, 32, 8, 8192, 128256, 131072, "500000", "32", "true"},
      {"llama3.2-3b", 28, 3072, 24, 8, 8192, 128256, 131072, "500000", "32", "true"},
  };
  for (const Llama& m : models) all.push_back(llama(m));
  all.push_back(llama({"mistral-7b", 32, 4096, 32, 8, 14336, 32000, 32768}));
  all.back().values.push_back({"model.window", "4096"});
}

// Jiang et al., arXiv:2401.04088, and config.json beside the released weights (mistralai on huggingface.co). The
// released models drop no token: model.moe.dropless.
void add_mixtral(std::vector<Preset>& all) {
  const auto add = [&](const Llama& m) {
    all.push_back(llama(m));
    all.back().values.insert(all.back().values.end(), {{"model.moe.experts", "8"}, {"model.moe.top_k", "2"}});
  };
  add({"mixtral-8x7b", 32, 4096, 32, 8, 14336, 32000, 32768, "1000000"});
  add({"mixtral-8x22b", 56, 6144, 48, 8, 16384, 32000, 65536, "1000000"});
}

// Yang et al., arXiv:2505.09388, and config.json beside the released weights (Qwen on huggingface.co), with the 32,768
// tokens of the last stage of pre-training.
void add_qwen3(std::vector<Preset>& all) {
  const auto add = [&](const Llama& m, const Values& more) {
    all.push_back(llama(m));
    all.back().values.insert(all.back().values.end(), {{"model.head", "128"}, {"model.qk_norm", "true"}});
    all.back().values.insert(all.back().values.end(), more.begin(), more.end());
  };
  const Values experts{{"model.moe.experts", "128"}, {"model.moe.top_k", "8"}, {"model.moe.balance", "0.001"}};
  add({"qwen3-8b", 36, 4096, 32, 8, 12288, 151936, 32768, "1000000", "", "false", "1e-6"}, {});
  add({"qwen3-32b", 64, 5120, 64, 8, 25600, 151936, 32768, "1000000", "", "false", "1e-6"}, {});
  add({"qwen3-30b-a3b", 48, 2048, 32, 4, 768, 151936, 32768, "1000000", "", "false", "1e-6"}, experts);
  add({"qwen3-235b-a22b", 94, 4096, 64, 4, 1536, 151936, 32768, "1000000", "", "false", "1e-6"}, experts);
}

// DeepSeek-AI, arXiv:2405.04434, appendix B (V2-Lite), and arXiv:2412.19437, section 4.2 (V3), and config.json beside
// the released weights (deepseek-ai on huggingface.co), with the 4,096 tokens of pre-training, before the positions are
// scaled.
void add_deepseek(std::vector<Preset>& all) {
  const auto add = [&](const Llama& m, const Values& more) {
    all.push_back(llama(m));
    all.back().values.insert(all.back().values.end(), {{"model.mla.kv_rank", "512"},
                                                       {"model.mla.nope", "128"},
                                                       {"model.mla.rope", "64"},
                                                       {"model.mla.value", "128"}});
    all.back().values.insert(all.back().values.end(), more.begin(), more.end());
  };
  add({"deepseek-v2-lite", 27, 2048, 16, 16, 1408, 102400, 4096, "10000", "", "false", "1e-6"},
      {{"model.moe.experts", "64"},
       {"model.moe.top_k", "6"},
       {"model.moe.shared_experts", "2"},
       {"model.moe.normalize", "false"},
       {"model.moe.dense_layers", "1"},
       {"model.moe.dense_mlp", "10944"},
       {"model.moe.balance", "0.001"}});
  add({"deepseek-v3", 61, 7168, 128, 128, 2048, 129280, 4096, "10000", "", "false", "1e-6"},
      {{"model.mla.q_rank", "1536"},
       {"model.moe.experts", "256"},
       {"model.moe.top_k", "8"},
       {"model.moe.shared_experts", "1"},
       {"model.moe.scores", "sigmoid"},
       {"model.moe.scale", "2.5"},
       {"model.moe.dense_layers", "3"},
       {"model.moe.dense_mlp", "18432"},
       {"model.moe.balance", "0.0001"}});
}

// Chowdhery et al., arXiv:2204.02311, section 2 and table 1: parallel blocks, one key head, heads of 256, SwiGLU.
void add_palm(std::vector<Preset>& all) {
  const auto add = [&](const char* name, std::int64_t layers, std::int64_t width, std::int64_t heads) {
    all.push_back(preset(name, "gpt", layers, width, heads, 256000, 2048,
                         {{"model.kv_heads", "1"},
                          {"model.head", "256"},
                          {"model.mlp_ratio", "4"},
                          {"model.parallel_blocks", "true"},
                          {"model.gated", "true"},
                          {"model.norm", "layer"},
                          {"model.position", "rotary"},
                          {"model.activation", "silu"},
                          {"model.bias", "false"},
                          {"model.tied", "true"}}));
  };
  add("palm-8b", 32, 4096, 16);
  add("palm-62b", 64, 8192, 32);
  add("palm-540b", 118, 18432, 48);
}

// Parmar et al., arXiv:2402.16819, table 1; Adler et al., arXiv:2406.11704, table 1: squared relu, grouped queries.
void add_nemotron(std::vector<Preset>& all) {
  const auto add = [&](const char* name, std::int64_t layers, std::int64_t width, std::int64_t heads) {
    all.push_back(preset(name, "gpt", layers, width, heads, 256000, 4096,
                         {{"model.kv_heads", "8"},
                          {"model.mlp_ratio", "4"},
                          {"model.norm", "layer"},
                          {"model.position", "rotary"},
                          {"model.activation", "relu2"},
                          {"model.bias", "false"},
                          {"model.tied", "false"}}));
  };
  add("nemotron4-15b", 32, 6144, 48);
  add("nemotron4-340b", 96, 18432, 96);
}

}  // namespace

std::vector<Preset> decoder_presets() {
  std::vector<Preset> all;
  add_gpt2(all);
  add_gpt3(all);
  add_mpt(all);
  add_llama(all);
  add_mixtral(all);
  add_qwen3(all);
  add_deepseek(all);
  add_palm(all);
  add_nemotron(all);
  return all;
}

}  // namespace systole
