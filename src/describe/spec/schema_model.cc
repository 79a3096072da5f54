// Keys of `model`.
#include <cmath>

#include "describe/spec/families/families.h"

namespace systole {
namespace {

const Condition kRotary{"model.position", {"rotary"}};
const Condition kLlama3{"model.rope_scaling.kind", {"llama3"}};

// A preset by name; its values are defaults that other keys override.
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

// Replaces the model's spec by the family's initial one.
Codec family_codec() {
  std::vector<std::string> names;
  for (const ModelFamily& family : model_families()) names.emplace_back(family.name());
  return named_codec(
      names, [](Workload& w, std::size_t i) { w.model.family = model_families()[i].made; },
      [](Workload& w) { return static_cast<std::size_t>(&family_of(w.model) - model_families().data()); });
}

// 0 is not printed: the document then gives the width of the feed-forward part in another way.
Codec ratio_codec() {
  Codec c = number_codec(IN_FAMILY(mlp_ratio), 0, 1000, true);
  c.write = [write = c.write](Workload& w) { return IN_FAMILY(mlp_ratio).at(w) == 0 ? Node() : write(w); };
  return c;
}

Codec mlp_codec() {
  Codec c = count_codec(IN_FAMILY(mlp), 1, 10'000'000);
  c.write = [write = c.write](Workload& w) { return IN_FAMILY(mlp_ratio).at(w) != 0 ? Node() : write(w); };
  return c;
}

// 0 (no window) is not printed.
Codec window_codec() {
  Codec c = count_codec(IN_FAMILY(window), 1, 100'000'000);
  c.write = [write = c.write](Workload& w) { return IN_FAMILY(window).at(w) == 0 ? Node() : write(w); };
  return c;
}

std::int64_t head_of(const ModelSpec& m) {
  return m.heads() > 0 && m.width() % m.heads() == 0 ? m.width() / m.heads() : 0;
}

std::int64_t mlp_of(const ModelSpec& m) {
  const double ratio = IN_FAMILY(mlp_ratio).get_or(m.family, 0);
  if (ratio != 0) return std::llround(static_cast<double>(m.width()) * ratio);
  const DecoderSpec* decoder = m.if_is<DecoderSpec>();
  if (decoder == nullptr || decoder->family != DecoderSpec::Family::llama) return 4 * m.width();
  // As in the code released with Llama 2: two thirds of 4 × width, rounded up to a multiple of 256.
  return (8 * m.width() / 3 + 255) / 256 * 256;
}

void add_decoder_keys(std::vector<Key>& keys) {
  keys.push_back({.path = "model.layers",
                  .codec = count_codec(IN_FAMILY(layers), 1, 10'000),
                  .doc = "Blocks of attention and feed-forward.",
                  .when = IN_FAMILY(layers).condition()});
  keys.push_back({.path = "model.width",
                  .codec = count_codec(IN_FAMILY(width), 1, 1'000'000),
                  .doc = "Hidden size: numbers of a token's vector between blocks.",
                  .more = "Also called d_model or embedding size. Without `head` the heads must divide it.",
                  .when = IN_FAMILY(width).condition()});
  keys.push_back({.path = "model.heads",
                  .codec = count_codec(IN_FAMILY(heads), 1, 100'000),
                  .doc = "Attention heads a block; without `head` they divide the width.",
                  .when = IN_FAMILY(heads).condition()});
  keys.push_back({.path = "model.kv_heads",
                  .codec = count_codec(IN_FAMILY(kv_heads), 1, 100'000),
                  .doc = "Heads of keys and values; they divide `heads`.",
                  .more = "Fewer than `heads` is grouped-query attention, 1 is multi-query attention.",
                  .derived = "model.heads",
                  .derive = [](Workload& w) { IN_FAMILY(kv_heads).at(w) = w.model.heads(); },
                  .when = IN_FAMILY(kv_heads).condition()});
  keys.push_back({.path = "model.head",
                  .codec = count_codec(IN_FAMILY(head), 1, 1'000'000),
                  .doc = "Head dimension (head_dim).",
                  .more = "Given, heads × head need not be the width.",
                  .derived = "width / heads",
                  .derive = [](Workload& w) { IN_FAMILY(head).at(w) = head_of(w.model); },
                  .when = IN_FAMILY(head).condition()});
  keys.push_back({.path = "model.window",
                  .codec = window_codec(),
                  .doc = "Sliding window: a token looks at the last so many tokens, itself among them.",
                  .more =
                      "Time and memory of attention then grow with context × window. Without it a token looks at all "
                      "before it in its document.",
                  .optional = true,
                  .when = IN_FAMILY(window).condition()});
  keys.push_back({.path = "model.parallel_blocks",
                  .codec = bool_codec(IN_FAMILY(parallel_blocks)),
                  .doc = "Attention and feed-forward part read the same norm and are added together, as in PaLM.",
                  .more = "Without it the feed-forward part has a norm of its own, of what attention gave.",
                  .default_yaml = "false",
                  .when = IN_FAMILY(parallel_blocks).condition()});
  keys.push_back({.path = "model.qk_norm",
                  .codec = bool_codec(IN_FAMILY(qk_norm)),
                  .doc = "Each head's query and key go through an RMS norm before positions, as in Qwen3.",
                  .more = "One scale of `head` numbers for all heads of queries, and one for those of keys.",
                  .default_yaml = "false",
                  .when = IN_FAMILY(qk_norm).condition()});
  keys.push_back({.path = "model.context",
                  .codec = count_codec(IN_FAMILY(context), 1, 100'000'000),
                  .doc = "Tokens a row: how far the model can look back.",
                  .more = "Longer documents are cut into pieces of this length.",
                  .when = IN_FAMILY(context).condition()});
  keys.push_back({.path = "model.vocabulary",
                  .codec = count_codec(IN_FAMILY(vocabulary), 1, 100'000'000),
                  .doc = "Rows of the embedding; at least the tokenizer's vocabulary.",
                  .more = "More than the tokenizer's is padding: those tokens never come.",
                  .derived = "data.tokenizer.vocabulary",
                  .derive = [](Workload& w) { IN_FAMILY(vocabulary).at(w) = w.data.tokenizer.vocabulary; },
                  .when = IN_FAMILY(vocabulary).condition()});
  keys.push_back({.path = "model.gated",
                  .codec = bool_codec(IN_FAMILY(gated)),
                  .doc = "The feed-forward part is down(activation(gate x) ∘ up x), of three matrices.",
                  .more = "With silu this is SwiGLU, with gelu GeGLU. Without: down(activation(up x)).",
                  .default_yaml = "false",
                  .when = IN_FAMILY(gated).condition()});
  keys.push_back({.path = "model.mlp_ratio",
                  .codec = ratio_codec(),
                  .doc = "Hidden width of the feed-forward part, as a multiple of `width`.",
                  .more = "width × mlp_ratio must be a whole number.",
                  .optional = true,
                  .when = IN_FAMILY(mlp_ratio).condition(),
                  .group = "mlp"});
  keys.push_back(
      {.path = "model.mlp",
       .codec = mlp_codec(),
       .doc = "Hidden width of the feed-forward part, in numbers.",
       .more = "Also called d_ff, intermediate size or ffn size. With model.moe.experts, of one expert.",
       .derived = "width × mlp_ratio, else 4 × width; with family llama 8/3 × width, up to a multiple of 256",
       .derive = [](Workload& w) { IN_FAMILY(mlp).at(w) = mlp_of(w.model); },
       .when = IN_FAMILY(mlp).condition(),
       .group = "mlp"});
  keys.push_back({.path = "model.norm",
                  .codec = choice_codec<Norm>(IN_FAMILY(norm), {{"layer", Norm::layer}, {"rms", Norm::rms}}),
                  .doc = "Normalisation before each part of a block and at the end.",
                  .default_yaml = "layer",
                  .when = IN_FAMILY(norm).condition()});
  keys.push_back({.path = "model.eps",
                  .codec = number_codec(IN_FAMILY(eps), 0, 1, true),
                  .doc = "Added to the variance, or mean square, that a norm divides by.",
                  .default_yaml = "1e-5",
                  .when = IN_FAMILY(eps).condition()});
  keys.push_back({.path = "model.position",
                  .codec = choice_codec<Position>(
                      IN_FAMILY(position),
                      {{"learned", Position::learned}, {"rotary", Position::rotary}, {"none", Position::none}}),
                  .doc = "How a token's place enters: a learned vector, rotated queries and keys, or not at all.",
                  .default_yaml = "learned",
                  .when = IN_FAMILY(position).condition()});
  keys.push_back({.path = "model.theta",
                  .codec = number_codec(IN_FAMILY(theta), 0, 1e12, true),
                  .doc = "Base of the rotary frequencies: pair i of d turns by theta^(-2i/d) a position.",
                  .more = "Also called rope_theta. Llama 3 has 500000.",
                  .default_yaml = "10000",
                  .when = kRotary});
  keys.push_back({.path = "model.tied",
                  .codec = bool_codec(IN_FAMILY(tied)),
                  .doc = "The output projection is the embedding, one parameter used twice.",
                  .default_yaml = "true",
                  .when = IN_FAMILY(tied).condition()});
}

void add_rope_scaling_keys(std::vector<Key>& keys) {
  keys.push_back(
      {.path = "model.rope_scaling.kind",
       .codec = choice_codec<RopeScaling::Kind>(
           IN_FAMILY(rope_scaling.kind), {{"none", RopeScaling::Kind::none}, {"llama3", RopeScaling::Kind::llama3}}),
       .doc = "llama3: slow frequencies are divided by factor, fast ones kept, those between blended.",
       .default_yaml = "none",
       .when = kRotary});
  keys.push_back({.path = "model.rope_scaling.factor",
                  .codec = number_codec(IN_FAMILY(rope_scaling.factor), 1, 1e6),
                  .doc = "What frequencies of wavelengths above original_context / low_freq_factor are divided by.",
                  .when = kLlama3});
  keys.push_back({.path = "model.rope_scaling.low_freq_factor",
                  .codec = number_codec(IN_FAMILY(rope_scaling.low_freq_factor), 0, 1e6, true),
                  .doc = "Wavelengths above original_context / this are slow.",
                  .default_yaml = "1",
                  .when = kLlama3});
  keys.push_back({.path = "model.rope_scaling.high_freq_factor",
                  .codec = number_codec(IN_FAMILY(rope_scaling.high_freq_factor), 0, 1e6, true),
                  .doc = "Wavelengths below original_context / this are fast; above low_freq_factor.",
                  .default_yaml = "4",
                  .when = kLlama3});
  keys.push_back({.path = "model.rope_scaling.original_context",
                  .codec = count_codec(IN_FAMILY(rope_scaling.original_context), 1, 100'000'000),
                  .doc = "Tokens a row of the training that the frequencies are of.",
                  .default_yaml = "8192",
                  .when = kLlama3});
}

// The loss of the family's initial spec.
void derive_loss(Workload& w) {
  std::visit(
      []<typename Spec>(Spec& spec) {
        if constexpr (requires { spec.loss; }) spec.loss = Spec().loss;
      },
      w.model.family);
}

void add_shared_keys(std::vector<Key>& keys) {
  keys.push_back(
      {.path = "model.loss",
       .codec = choice_codec<Loss>(IN_FAMILY(loss),
                                   {{"squared_error", Loss::squared_error}, {"cross_entropy", Loss::cross_entropy}}),
       .doc = "squared_error: the mean over examples and outputs. cross_entropy: one of the outputs is right.",
       .derived = "squared_error for mlp, else cross_entropy",
       .derive = &derive_loss,
       .when = IN_FAMILY(loss).condition()});
  using A = Activation;
  keys.push_back({.path = "model.activation",
                  .codec = choice_codec<A>(IN_FAMILY(activation), {{"gelu", A::gelu},
                                                                   {"gelu_tanh", A::gelu_tanh},
                                                                   {"relu", A::relu},
                                                                   {"relu2", A::relu2},
                                                                   {"silu", A::silu},
                                                                   {"tanh", A::tanh},
                                                                   {"sigmoid", A::sigmoid}}),
                  .doc = "Nonlinearity of the feed-forward parts.",
                  .more = "gelu is exact, gelu_tanh the approximation that GPT-2 uses. relu2 is the square of relu.",
                  .default_yaml = "gelu_tanh",
                  .when = IN_FAMILY(activation).condition()});
  keys.push_back({.path = "model.bias",
                  .codec = bool_codec(IN_FAMILY(bias)),
                  .doc = "Projections and layer norms have a bias.",
                  .more = "Those of a bert always have, those of a t5 never.",
                  .default_yaml = "true",
                  .when = IN_FAMILY(bias).condition()});
  keys.push_back({.path = "model.dropout",
                  .codec = fraction_codec(IN_FAMILY(dropout)),
                  .doc = "Share of activations that training sets to zero; below 1.",
                  .default_yaml = "0",
                  .when = IN_FAMILY(dropout).condition()});
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
  keys.push_back(
      {.path = "model.weights",
       .codec = text_codec(AT(model.weights)),
       .doc =
           "Folder of a Hugging Face model (safetensors of GPT-2, Llama, Mistral, Qwen3 or T5), or a GGUF file, that "
           "training starts from.",
       .more = "Its config.json, or its metadata, decide the keys of `model`, which can be left out, and its tokenizer "
               "is used unless data.tokenizer says otherwise. docs/guide/weights.md",
       .optional = true});
  keys.push_back(
      {.path = "model.family",
       .codec = family_codec(),
       .doc = "gpt, llama: decoders of transformer blocks. bert: an encoder. t5: both. mlp: full connections.",
       .more = "A family is defaults for the other keys: gpt those of GPT-2, llama those of Llama, … . A preset "
               "names its family, so that the key can be left out beside it."});
  add_decoder_keys(keys);
  for (const ModelFamily& family : model_families()) {
    if (family.add_keys != nullptr) family.add_keys(schema);
  }
  add_shared_keys(keys);
  add_rope_scaling_keys(keys);
  add_moe_keys(schema);
  add_mla_keys(schema);
  keys.push_back(
      {.path = "model.adapters.rank",
       .codec = count_codec(IN_FAMILY(adapters.rank), 0, 100'000),
       .doc = "Rank of the adapters; above 0 every other weight is frozen. 0: none, all weights are trained.",
       .default_yaml = "0",
       .when = IN_FAMILY(adapters.rank).condition()});
  keys.push_back({.path = "model.adapters.scale",
                  .codec = number_codec(IN_FAMILY(adapters.scale), 0, 1e6, true),
                  .doc = "What an adapter contributes is multiplied by this.",
                  .default_yaml = "1",
                  .when = IN_FAMILY(adapters.scale).condition()});
}

}  // namespace systole
