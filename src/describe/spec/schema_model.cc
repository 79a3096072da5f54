// Keys of `model`.
#include "describe/spec/schema.h"

namespace systole {
namespace {

using Model = ModelSpec;
const Condition kGpt{"model.family", {"gpt"}};
const Condition kMlp{"model.family", {"mlp"}};
const Condition kTransformer{"model.family", {"gpt", "bert", "t5"}};

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

void add_gpt_keys(std::vector<Key>& keys) {
  keys.push_back({.path = "model.layers",
                  .codec = count_codec(AT(model.layers), 1, 10'000),
                  .doc = "Blocks of attention and feed-forward.",
                  .when = kTransformer});
  keys.push_back({.path = "model.width",
                  .codec = count_codec(AT(model.width), 1, 1'000'000),
                  .doc = "Numbers that stand for a token between blocks.",
                  .more = "Also called d_model, embedding size or hidden size. The heads must divide it.",
                  .when = kTransformer});
  keys.push_back({.path = "model.heads",
                  .codec = count_codec(AT(model.heads), 1, 100'000),
                  .doc = "Attention heads a block; they divide the width.",
                  .more = "A t5 whose head_width is given may have any number.",
                  .when = kTransformer});
  keys.push_back({.path = "model.kv_heads",
                  .codec = count_codec(AT(model.kv_heads), 1, 100'000),
                  .doc = "Heads of keys and values; they divide `heads`.",
                  .more = "Fewer than `heads` is grouped-query attention, 1 is multi-query attention.",
                  .derived = "model.heads",
                  .derive = [](Workload& w) { w.model.kv_heads = w.model.heads; },
                  .when = kGpt});
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
  keys.push_back({.path = "model.mlp_ratio",
                  .codec = number_codec(AT(model.mlp_ratio), 0, 1000, true),
                  .doc = "Hidden width of the feed-forward part, as a multiple of `width`.",
                  .more = "width × mlp_ratio must be a whole number.",
                  .default_yaml = "4",
                  .when = {"model.family", {"gpt", "bert"}}});
  keys.push_back(
      {.path = "model.norm",
       .codec = choice_codec<Model::Norm>(AT(model.norm), {{"layer", Model::Norm::layer}, {"rms", Model::Norm::rms}}),
       .doc = "Normalisation before each part of a block and at the end.",
       .default_yaml = "layer",
       .when = kGpt});
  keys.push_back({.path = "model.position",
                  .codec = choice_codec<Model::Position>(AT(model.position), {{"learned", Model::Position::learned},
                                                                              {"rotary", Model::Position::rotary},
                                                                              {"none", Model::Position::none}}),
                  .doc = "How a token's place enters: a learned vector, rotated queries and keys, or not at all.",
                  .default_yaml = "learned",
                  .when = kGpt});
  keys.push_back({.path = "model.tied",
                  .codec = bool_codec(AT(model.tied)),
                  .doc = "The output projection is the embedding, one parameter used twice.",
                  .default_yaml = "true",
                  .when = {"model.family", {"gpt", "t5"}}});
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
                                                                  {"silu", A::silu},
                                                                  {"tanh", A::tanh},
                                                                  {"sigmoid", A::sigmoid}}),
                  .doc = "Nonlinearity of the feed-forward parts.",
                  .more = "gelu is exact, gelu_tanh the approximation that GPT-2 uses.",
                  .derived = "gelu for bert, relu for t5, else gelu_tanh",
                  .derive = [](Workload& w) {
                    const bool bert = w.model.family == Model::Family::bert, t5 = w.model.family == Model::Family::t5;
                    w.model.activation = bert ? A::gelu : t5 ? A::relu : A::gelu_tanh;
                  }});
  keys.push_back({.path = "model.bias",
                  .codec = bool_codec(AT(model.bias)),
                  .doc = "Projections and layer norms have a bias.",
                  .more = "Those of a bert always have, those of a t5 never.",
                  .default_yaml = "true",
                  .when = {"model.family", {"gpt", "mlp"}}});
  keys.push_back({.path = "model.dropout",
                  .codec = fraction_codec(AT(model.dropout)),
                  .doc = "Share of activations that training sets to zero; below 1.",
                  .default_yaml = "0"});
}

}  // namespace

void add_model_keys(Schema& schema) {
  schema.sections.push_back({"model", "What is trained.", {}, {}});
  schema.sections.push_back({"model.adapters", "Low-rank adapters beside frozen weights (LoRA).", {}, {}});
  auto& keys = schema.keys;
  keys.push_back({.path = "model.preset",
                  .codec = optional_preset_codec(),
                  .doc = "A published model's values as defaults for the keys of `model`.",
                  .more = "Keys that stand beside it win.",
                  .optional = true});
  keys.push_back({.path = "model.family",
                  .codec = choice_codec<Model::Family>(AT(model.family), {{"gpt", Model::Family::gpt},
                                                                          {"bert", Model::Family::bert},
                                                                          {"t5", Model::Family::t5},
                                                                          {"mlp", Model::Family::mlp}}),
                  .doc = "gpt: a decoder of transformer blocks. bert: an encoder. t5: both. mlp: full connections.",
                  .more = "A preset names its family, so that the key can be left out beside it."});
  add_gpt_keys(keys);
  add_t5_keys(schema);
  add_mlp_keys(keys);
  add_shared_keys(keys);
  keys.push_back(
      {.path = "model.adapters.rank",
       .codec = count_codec(AT(model.adapter_rank), 0, 100'000),
       .doc = "Rank of the adapters; above 0 every other weight is frozen. 0: none, all weights are trained.",
       .default_yaml = "0",
       .when = kGpt});
  keys.push_back({.path = "model.adapters.scale",
                  .codec = number_codec(AT(model.adapter_scale), 0, 1e6, true),
                  .doc = "What an adapter contributes is multiplied by this.",
                  .default_yaml = "1",
                  .when = kGpt});
}

}  // namespace systole
