// Keys of `model`.
#include <cmath>

#include "describe/spec/schema.h"

namespace systole {
namespace {

using Model = ModelSpec;
const Condition kDecoder{"model.family", {"gpt", "llama"}};
const Condition kTransformer{"model.family", {"gpt", "llama", "bert", "t5"}};
const Condition kNotBert{"model.family", {"gpt", "llama", "t5"}};
const Condition kMlp{"model.family", {"mlp"}};
const Condition kRotary{"model.position", {"rotary"}};
const Condition kLlama3{"model.rope_scaling.kind", {"llama3"}};

// A preset by its name; the values that come with it are defaults, not laws.
Codec preset_codec() {
  std::vector<std::string> names = preset_names();
  return named_codec(
      names, [names](Workload& w, std::size_t i) { w.model.preset = names[i]; },
      [names](Workload& w) {
        std::size_t i = 0;
        while (names[i] != w.model.preset) ++i;
        return i;
      });
}

Codec optional_preset_codec() {
  Codec c = preset_codec();
  c.write = [write = c.write](Workload& w) { return w.model.preset.empty() ? Node() : write(w); };
  return c;
}

// 0 is left out: the document says the width of the feed-forward part in another way.
Codec ratio_codec() {
  Codec c = number_codec(AT(model.mlp_ratio), 0, 1000, true);
  c.write = [write = c.write](Workload& w) { return w.model.mlp_ratio == 0 ? Node() : write(w); };
  return c;
}

Codec mlp_codec() {
  Codec c = count_codec(AT(model.mlp), 1, 10'000'000);
  c.write = [write = c.write](Workload& w) { return w.model.mlp_ratio != 0 ? Node() : write(w); };
  return c;
}

// 0, no window, is left out.
Codec window_codec() {
  Codec c = count_codec(AT(model.window), 1, 100'000'000);
  c.write = [write = c.write](Workload& w) { return w.model.window == 0 ? Node() : write(w); };
  return c;
}

std::int64_t head_of(const Model& m) { return m.heads > 0 && m.width % m.heads == 0 ? m.width / m.heads : 0; }

std::int64_t mlp_of(const Model& m) {
  if (m.mlp_ratio != 0) return std::llround(static_cast<double>(m.width) * m.mlp_ratio);
  if (m.family != Model::Family::llama) return 4 * m.width;
  // As the code that was released with Llama 2: two thirds of 4 × width, in whole multiples of 256.
  return (8 * m.width / 3 + 255) / 256 * 256;
}

void add_decoder_keys(std::vector<Key>& keys) {
  keys.push_back({.path = "model.layers",
                  .codec = count_codec(AT(model.layers), 1, 10'000),
                  .doc = "Blocks of attention and feed-forward.",
                  .when = kTransformer});
  keys.push_back(
      {.path = "model.width",
       .codec = count_codec(AT(model.width), 1, 1'000'000),
       .doc = "Numbers that stand for a token between blocks.",
       .more = "Also called d_model, embedding size or hidden size. Without `head` the heads must divide it.",
       .when = kTransformer});
  keys.push_back({.path = "model.heads",
                  .codec = count_codec(AT(model.heads), 1, 100'000),
                  .doc = "Attention heads a block; without `head` they divide the width.",
                  .when = kTransformer});
  keys.push_back({.path = "model.kv_heads",
                  .codec = count_codec(AT(model.kv_heads), 1, 100'000),
                  .doc = "Heads of keys and values; they divide `heads`.",
                  .more = "Fewer than `heads` is grouped-query attention, 1 is multi-query attention.",
                  .derived = "model.heads",
                  .derive = [](Workload& w) { w.model.kv_heads = w.model.heads; },
                  .when = kDecoder});
  keys.push_back({.path = "model.head",
                  .codec = count_codec(AT(model.head), 1, 1'000'000),
                  .doc = "Numbers that a head looks at.",
                  .more = "Given, heads × head need not be the width.",
                  .derived = "width / heads",
                  .derive = [](Workload& w) { w.model.head = head_of(w.model); },
                  .when = kNotBert});
  keys.push_back({.path = "model.window",
                  .codec = window_codec(),
                  .doc = "Sliding window: a token looks at the last so many tokens, itself among them.",
                  .more =
                      "Time and memory of attention then grow with context × window. Without it a token looks at all "
                      "before it in its document.",
                  .optional = true,
                  .when = kDecoder});
  keys.push_back({.path = "model.parallel_blocks",
                  .codec = bool_codec(AT(model.parallel_blocks)),
                  .doc = "Attention and feed-forward part read the same norm and are added together, as in PaLM.",
                  .more = "Without it the feed-forward part has a norm of its own, of what attention gave.",
                  .default_yaml = "false",
                  .when = kDecoder});
  keys.push_back({.path = "model.qk_norm",
                  .codec = bool_codec(AT(model.qk_norm)),
                  .doc = "Each head's query and key go through an RMS norm before positions, as in Qwen3.",
                  .more = "One scale of `head` numbers for all heads of queries, and one for those of keys.",
                  .default_yaml = "false",
                  .when = kDecoder});
  keys.push_back({.path = "model.context",
                  .codec = count_codec(AT(model.context), 1, 100'000'000),
                  .doc = "Tokens a row: how far the model can look back.",
                  .more = "Longer documents are cut into pieces of this length.",
                  .when = kTransformer});
  keys.push_back({.path = "model.vocabulary",
                  .codec = count_codec(AT(model.vocabulary), 1, 100'000'000),
                  .doc = "Rows of the embedding; at least the tokenizer's vocabulary.",
                  .more = "More than the tokenizer's is padding: those tokens never come.",
                  .derived = "data.tokenizer.vocabulary",
                  .derive = [](Workload& w) { w.model.vocabulary = w.data.tokenizer.vocabulary; },
                  .when = kTransformer});
  keys.push_back({.path = "model.gated",
                  .codec = bool_codec(AT(model.gated)),
                  .doc = "The feed-forward part is down(activation(gate x) ∘ up x), of three matrices.",
                  .more = "With silu this is SwiGLU, with gelu GeGLU. Without: down(activation(up x)).",
                  .default_yaml = "false",
                  .when = kNotBert});
  keys.push_back({.path = "model.mlp_ratio",
                  .codec = ratio_codec(),
                  .doc = "Hidden width of the feed-forward part, as a multiple of `width`.",
                  .more = "width × mlp_ratio must be a whole number.",
                  .optional = true,
                  .when = kTransformer,
                  .group = "mlp"});
  keys.push_back(
      {.path = "model.mlp",
       .codec = mlp_codec(),
       .doc = "Hidden width of the feed-forward part, in numbers.",
       .more = "Also called d_ff, intermediate size or ffn size. With model.moe.experts, of one expert.",
       .derived = "width × mlp_ratio, else 4 × width; with family llama 8/3 × width, up to a multiple of 256",
       .derive = [](Workload& w) { w.model.mlp = mlp_of(w.model); },
       .when = kTransformer,
       .group = "mlp"});
  keys.push_back(
      {.path = "model.norm",
       .codec = choice_codec<Model::Norm>(AT(model.norm), {{"layer", Model::Norm::layer}, {"rms", Model::Norm::rms}}),
       .doc = "Normalisation before each part of a block and at the end.",
       .default_yaml = "layer",
       .when = kDecoder});
  keys.push_back({.path = "model.eps",
                  .codec = number_codec(AT(model.eps), 0, 1, true),
                  .doc = "Added to the variance, or mean square, that a norm divides by.",
                  .default_yaml = "1e-5",
                  .when = kTransformer});
  keys.push_back({.path = "model.position",
                  .codec = choice_codec<Model::Position>(AT(model.position), {{"learned", Model::Position::learned},
                                                                              {"rotary", Model::Position::rotary},
                                                                              {"none", Model::Position::none}}),
                  .doc = "How a token's place enters: a learned vector, rotated queries and keys, or not at all.",
                  .default_yaml = "learned",
                  .when = kDecoder});
  keys.push_back({.path = "model.theta",
                  .codec = number_codec(AT(model.theta), 0, 1e12, true),
                  .doc = "Base of the rotary frequencies: pair i of d turns by theta^(-2i/d) a position.",
                  .more = "Also called rope_theta. Llama 3 has 500000.",
                  .default_yaml = "10000",
                  .when = kRotary});
  keys.push_back({.path = "model.tied",
                  .codec = bool_codec(AT(model.tied)),
                  .doc = "The output projection is the embedding, one parameter used twice.",
                  .default_yaml = "true",
                  .when = kNotBert});
}

void add_rope_scaling_keys(std::vector<Key>& keys) {
  using Scaling = Model::RopeScaling;
  keys.push_back({.path = "model.rope_scaling.kind",
                  .codec = choice_codec<Scaling::Kind>(
                      AT(model.rope_scaling.kind), {{"none", Scaling::Kind::none}, {"llama3", Scaling::Kind::llama3}}),
                  .doc = "llama3: slow frequencies are divided by factor, fast ones kept, those between blended.",
                  .default_yaml = "none",
                  .when = kRotary});
  keys.push_back({.path = "model.rope_scaling.factor",
                  .codec = number_codec(AT(model.rope_scaling.factor), 1, 1e6),
                  .doc = "What frequencies of wavelengths above original_context / low_freq_factor are divided by.",
                  .when = kLlama3});
  keys.push_back({.path = "model.rope_scaling.low_freq_factor",
                  .codec = number_codec(AT(model.rope_scaling.low_freq_factor), 0, 1e6, true),
                  .doc = "Wavelengths above original_context / this are slow.",
                  .default_yaml = "1",
                  .when = kLlama3});
  keys.push_back({.path = "model.rope_scaling.high_freq_factor",
                  .codec = number_codec(AT(model.rope_scaling.high_freq_factor), 0, 1e6, true),
                  .doc = "Wavelengths below original_context / this are fast; above low_freq_factor.",
                  .default_yaml = "4",
                  .when = kLlama3});
  keys.push_back({.path = "model.rope_scaling.original_context",
                  .codec = count_codec(AT(model.rope_scaling.original_context), 1, 100'000'000),
                  .doc = "Tokens a row of the training that the frequencies are of.",
                  .default_yaml = "8192",
                  .when = kLlama3});
}

void add_mlp_keys(std::vector<Key>& keys) {
  keys.push_back({.path = "model.inputs",
                  .codec = count_codec(AT(model.inputs), 1, 100'000'000),
                  .doc = "Numbers an example has.",
                  .when = kMlp});
  keys.push_back({.path = "model.hidden",
                  .codec = counts_codec(AT(model.hidden), 1, 100'000'000),
                  .doc = "Widths of the layers between inputs and outputs; `[]` is linear regression.",
                  .default_yaml = "[]",
                  .when = kMlp});
  keys.push_back({.path = "model.outputs",
                  .codec = count_codec(AT(model.outputs), 1, 100'000'000),
                  .doc = "Numbers that are predicted.",
                  .when = kMlp});
  keys.push_back(
      {.path = "model.loss",
       .codec = choice_codec<Model::Loss>(AT(model.loss), {{"squared_error", Model::Loss::squared_error},
                                                           {"cross_entropy", Model::Loss::cross_entropy}}),
       .doc = "squared_error: the mean over examples and outputs. cross_entropy: one of the outputs is right.",
       .derived = "squared_error for mlp, else cross_entropy",
       .derive = [](Workload& w) {
         w.model.loss = w.model.family == Model::Family::mlp ? Model::Loss::squared_error : Model::Loss::cross_entropy;
       }});
}

void add_shared_keys(std::vector<Key>& keys) {
  using A = Model::Activation;
  keys.push_back({.path = "model.activation",
                  .codec = choice_codec<A>(AT(model.activation), {{"gelu", A::gelu},
                                                                  {"gelu_tanh", A::gelu_tanh},
                                                                  {"relu", A::relu},
                                                                  {"relu2", A::relu2},
                                                                  {"silu", A::silu},
                                                                  {"tanh", A::tanh},
                                                                  {"sigmoid", A::sigmoid}}),
                  .doc = "Nonlinearity of the feed-forward parts.",
                  .more = "gelu is exact, gelu_tanh the approximation that GPT-2 uses. relu2 is the square of relu.",
                  .default_yaml = "gelu_tanh"});
  keys.push_back({.path = "model.bias",
                  .codec = bool_codec(AT(model.bias)),
                  .doc = "Projections and layer norms have a bias.",
                  .more = "Those of a bert always have, those of a t5 never.",
                  .default_yaml = "true",
                  .when = {"model.family", {"gpt", "llama", "mlp"}}});
  keys.push_back({.path = "model.dropout",
                  .codec = fraction_codec(AT(model.dropout)),
                  .doc = "Share of activations that training sets to zero; below 1.",
                  .default_yaml = "0"});
}

}  // namespace

void add_model_keys(Schema& schema) {
  schema.sections.push_back({"model", "What is trained.", {}, {}});
  schema.sections.push_back(
      {"model.rope_scaling", "Rotary positions beyond the context of the first training.", {}, {}});
  schema.sections.push_back({"model.adapters", "Low-rank adapters beside frozen weights (LoRA).", {}, {}});
  auto& keys = schema.keys;
  keys.push_back({.path = "model.preset",
                  .codec = optional_preset_codec(),
                  .doc = "A published model's values as defaults for the keys of `model`.",
                  .more = "Keys that stand beside it win. docs/concepts/models.md says where each preset is from.",
                  .optional = true});
  Codec weights = text_codec(AT(model.weights));
  weights.write = [](Workload& w) { return w.model.weights.empty() ? Node() : Node(w.model.weights); };
  keys.push_back(
      {.path = "model.weights",
       .codec = std::move(weights),
       .doc = "Folder of a Hugging Face model (safetensors of GPT-2, Llama or T5) that training starts from.",
       .more = "Its config.json decides the keys of `model`, which can be left out, and its tokenizer is used "
               "unless data.tokenizer says otherwise. docs/guide/weights.md",
       .optional = true});
  keys.push_back(
      {.path = "model.family",
       .codec = choice_codec<Model::Family>(AT(model.family), {{"gpt", Model::Family::gpt},
                                                               {"llama", Model::Family::llama},
                                                               {"bert", Model::Family::bert},
                                                               {"t5", Model::Family::t5},
                                                               {"mlp", Model::Family::mlp}}),
       .doc = "gpt, llama: decoders of transformer blocks. bert: an encoder. t5: both. mlp: full connections.",
       .more = "A family is defaults for the other keys: gpt those of GPT-2, llama those of Llama, … . A preset "
               "names its family, so that the key can be left out beside it."});
  add_decoder_keys(keys);
  add_t5_keys(schema);
  add_mlp_keys(keys);
  add_shared_keys(keys);
  add_rope_scaling_keys(keys);
  add_moe_keys(schema);
  add_mla_keys(schema);
  keys.push_back(
      {.path = "model.adapters.rank",
       .codec = count_codec(AT(model.adapter_rank), 0, 100'000),
       .doc = "Rank of the adapters; above 0 every other weight is frozen. 0: none, all weights are trained.",
       .default_yaml = "0",
       .when = kDecoder});
  keys.push_back({.path = "model.adapters.scale",
                  .codec = number_codec(AT(model.adapter_scale), 0, 1e6, true),
                  .doc = "What an adapter contributes is multiplied by this.",
                  .default_yaml = "1",
                  .when = kDecoder});
}

}  // namespace systole
