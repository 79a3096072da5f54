// Keys of `model.moe`, experts in the place of a block's one feed-forward part, and of `model.mla`, latent attention.
#include "describe/spec/schema.h"

namespace systole {

void add_moe_keys(Schema& schema) {
  const Condition decoder{"model.family", {"gpt", "llama"}}, given{"model.moe.experts", {}};
  schema.sections.push_back({"model.moe", "A mixture of experts: each token goes to some of them.", {}, {}});
  auto& keys = schema.keys;
  // 0, none, is left out.
  const auto or_none = [](Codec codec, std::int64_t ModelSpec::Experts::*field) {
    codec.write = [field, write = codec.write](Workload& w) { return w.model.moe.*field == 0 ? Node() : write(w); };
    return codec;
  };
  keys.push_back({.path = "model.moe.experts",
                  .codec = or_none(count_codec(AT(model.moe.experts), 2, 100'000), &ModelSpec::Experts::experts),
                  .doc = "Experts of a block, each a feed-forward part of width model.mlp.",
                  .more = "Without it a block has one feed-forward part for all. docs/concepts/experts.md",
                  .optional = true,
                  .when = decoder});
  keys.push_back({.path = "model.moe.top_k",
                  .codec = count_codec(AT(model.moe.top_k), 1, 1000),
                  .doc = "Experts that a token goes to, those its router gives most; of equal ones the first.",
                  .default_yaml = "2",
                  .when = given});
  keys.push_back({.path = "model.moe.capacity_factor",
                  .codec = number_codec(AT(model.moe.capacity_factor), 0, 100'000, true),
                  .doc = "Places of an expert in a group, as a multiple of its even share; who finds none is dropped.",
                  .more = "Buffers have this size whatever is routed: of 1.25 a fifth is padding at the best.",
                  .default_yaml = "1.25",
                  .when = given});
  keys.push_back({.path = "model.moe.dropless",
                  .codec = bool_codec(AT(model.moe.dropless)),
                  .doc = "A place for every token in every expert, whatever capacity_factor says.",
                  .more = "Buffers and their products then grow experts / top_k times.",
                  .default_yaml = "false",
                  .when = given});
  keys.push_back({.path = "model.moe.group",
                  .codec = or_none(count_codec(AT(model.moe.group), 1, 100'000'000), &ModelSpec::Experts::group),
                  .doc = "Tokens of a row that compete for places; divides `context`.",
                  .more = "Without it a group is a row.",
                  .optional = true,
                  .when = given});
  keys.push_back({.path = "model.moe.shared_experts",
                  .codec = count_codec(AT(model.moe.shared_experts), 0, 100'000),
                  .doc = "Experts that every token goes to besides, as in DeepSeek.",
                  .default_yaml = "0",
                  .when = given});
  keys.push_back({.path = "model.moe.normalize",
                  .codec = bool_codec(AT(model.moe.normalize)),
                  .doc = "What a token's experts count for adds up to 1; without, it is the router's softmax.",
                  .default_yaml = "true",
                  .when = given});
  keys.push_back({.path = "model.moe.dense_layers",
                  .codec = count_codec(AT(model.moe.dense_layers), 0, 10'000),
                  .doc = "First layers that have one feed-forward part and no experts, as in DeepSeek.",
                  .default_yaml = "0",
                  .when = given});
  keys.push_back({.path = "model.moe.every",
                  .codec = count_codec(AT(model.moe.every), 1, 10'000),
                  .doc = "Of so many layers the last has experts, and the others one feed-forward part.",
                  .more =
                      "Behind the dense_layers. Llama 4 Maverick has 2. A pipeline is cut between such groups, which "
                      "`pipeline.layers` counts.",
                  .default_yaml = "1",
                  .when = given});
  keys.push_back({.path = "model.moe.dense_mlp",
                  .codec = or_none(count_codec(AT(model.moe.dense_mlp), 1, 10'000'000), &ModelSpec::Experts::dense_mlp),
                  .doc = "Hidden width of the feed-forward part of the layers without experts.",
                  .optional = true,
                  .when = given});
  using Scores = ModelSpec::Experts::Scores;
  keys.push_back(
      {.path = "model.moe.scores",
       .codec =
           choice_codec<Scores>(AT(model.moe.scores), {{"softmax", Scores::softmax}, {"sigmoid", Scores::sigmoid}}),
       .doc = "What a router's numbers become before the largest are taken: shares, or each by itself (DeepSeek-V3).",
       .default_yaml = "softmax",
       .when = given});
  keys.push_back({.path = "model.moe.scale",
                  .codec = number_codec(AT(model.moe.scale), 0, 1000, true),
                  .doc = "What a token's experts give together, the shared ones apart, is multiplied by this.",
                  .more = "Also called routed_scaling_factor. DeepSeek-V3 has 2.5.",
                  .default_yaml = "1",
                  .when = given});
  keys.push_back({.path = "model.moe.balance",
                  .codec = number_codec(AT(model.moe.balance), 0, 1000),
                  .doc = "Coefficient of the loss that keeps experts equally busy; 0: none.",
                  .more = "It is 1 a block when they are, and part of the loss of training, not of evaluation.",
                  .default_yaml = "0.01",
                  .when = given});
}

void add_mla_keys(Schema& schema) {
  const Condition decoder{"model.family", {"gpt", "llama"}}, given{"model.mla.kv_rank", {}};
  schema.sections.push_back(
      {"model.mla", "Latent attention: keys and values are made of a few numbers a token (DeepSeek).", {}, {}});
  using Latent = ModelSpec::Latent;
  const auto or_none = [](Codec codec, std::int64_t Latent::*field) {
    codec.write = [field, write = codec.write](Workload& w) { return w.model.mla.*field == 0 ? Node() : write(w); };
    return codec;
  };
  auto& keys = schema.keys;
  keys.push_back({.path = "model.mla.kv_rank",
                  .codec = or_none(count_codec(AT(model.mla.kv_rank), 1, 1'000'000), &Latent::kv_rank),
                  .doc = "Numbers a token that the keys and values of all heads are made of.",
                  .more = "Without it there is no latent attention. docs/concepts/models.md",
                  .optional = true,
                  .when = decoder});
  keys.push_back({.path = "model.mla.q_rank",
                  .codec = or_none(count_codec(AT(model.mla.q_rank), 1, 1'000'000), &Latent::q_rank),
                  .doc = "Numbers a token that the queries of all heads are made of.",
                  .more = "Without it they are made of the token's `width` numbers.",
                  .optional = true,
                  .when = given});
  keys.push_back({.path = "model.mla.nope",
                  .codec = count_codec(AT(model.mla.nope), 1, 1'000'000),
                  .doc = "Numbers of a head's query and key that have no position.",
                  .when = given});
  keys.push_back({.path = "model.mla.rope",
                  .codec = count_codec(AT(model.mla.rope), 2, 1'000'000),
                  .doc = "Numbers of a head's query and key that positions rotate; of keys all heads share them.",
                  .when = given});
  keys.push_back({.path = "model.mla.value",
                  .codec = count_codec(AT(model.mla.value), 1, 1'000'000),
                  .doc = "Numbers of a head's value; at most nope + rope.",
                  .when = given});
}

}  // namespace systole
