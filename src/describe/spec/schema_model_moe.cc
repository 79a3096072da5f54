// Keys of `model.moe`, experts instead of a block's feed-forward part, and of `model.mla`, latent attention.
#include "describe/spec/families/families.h"

namespace systole {

void add_moe_keys(Schema& schema) {
  const Condition given{"model.moe.experts", {}};
  schema.sections.push_back({"model.moe", "A mixture of experts: each token goes to some of them.", {}, {}});
  auto& keys = schema.keys;
  // 0 (none) is not printed.
  const auto or_none = [](Codec codec, std::int64_t ExpertsSpec::*field) {
    codec.write = [field, write = codec.write](Workload& w) {
      return IN_FAMILY(moe).at(w).*field == 0 ? Node() : write(w);
    };
    return codec;
  };
  keys.push_back({.path = "model.moe.experts",
                  .codec = or_none(count_codec(IN_FAMILY(moe.experts), 2, 100'000), &ExpertsSpec::experts),
                  .doc = "Experts of a block, each a feed-forward part of width model.mlp.",
                  .more = "Without it a block has one feed-forward part for all. docs/concepts/experts.md",
                  .optional = true,
                  .when = IN_FAMILY(moe).condition()});
  keys.push_back({.path = "model.moe.top_k",
                  .codec = count_codec(IN_FAMILY(moe.top_k), 1, 1000),
                  .doc = "Experts that each token is routed to, those of the highest scores; of equal ones the first.",
                  .default_yaml = "2",
                  .when = given});
  keys.push_back(
      {.path = "model.moe.capacity_factor",
       .codec = number_codec(IN_FAMILY(moe.capacity_factor), 0, 100'000, true),
       .doc = "Capacity of an expert in a group, as a multiple of its even share; tokens beyond it are dropped.",
       .more = "Buffers have this size whatever is routed: of 1.25 a fifth is padding at the best.",
       .default_yaml = "1.25",
       .when = given});
  keys.push_back({.path = "model.moe.dropless",
                  .codec = bool_codec(IN_FAMILY(moe.dropless)),
                  .doc = "Capacity for every token in every expert, whatever capacity_factor says.",
                  .more = "Buffers and their products then grow experts / top_k times.",
                  .default_yaml = "false",
                  .when = given});
  keys.push_back({.path = "model.moe.group",
                  .codec = or_none(count_codec(IN_FAMILY(moe.group), 1, 100'000'000), &ExpertsSpec::group),
                  .doc = "Tokens of a row that share the experts' capacity; divides `context`.",
                  .more = "Without it a group is a row.",
                  .optional = true,
                  .when = given});
  keys.push_back({.path = "model.moe.shared_experts",
                  .codec = count_codec(IN_FAMILY(moe.shared_experts), 0, 100'000),
                  .doc = "Experts that every token goes to besides, as in DeepSeek.",
                  .default_yaml = "0",
                  .when = given});
  keys.push_back(
      {.path = "model.moe.normalize",
       .codec = bool_codec(IN_FAMILY(moe.normalize)),
       .doc = "The weights of a token's experts are normalized to sum to 1; without, they are the router's scores.",
       .default_yaml = "true",
       .when = given});
  keys.push_back({.path = "model.moe.dense_layers",
                  .codec = count_codec(IN_FAMILY(moe.dense_layers), 0, 10'000),
                  .doc = "First layers that have one feed-forward part and no experts, as in DeepSeek.",
                  .default_yaml = "0",
                  .when = given});
  keys.push_back({.path = "model.moe.every",
                  .codec = count_codec(IN_FAMILY(moe.every), 1, 10'000),
                  .doc = "Of so many layers the last has experts, and the others one feed-forward part.",
                  .more =
                      "Behind the dense_layers. Llama 4 Maverick has 2. A pipeline is cut between such groups, which "
                      "`pipeline.layers` counts.",
                  .default_yaml = "1",
                  .when = given});
  keys.push_back({.path = "model.moe.dense_mlp",
                  .codec = or_none(count_codec(IN_FAMILY(moe.dense_mlp), 1, 10'000'000), &ExpertsSpec::dense_mlp),
                  .doc = "Hidden width of the feed-forward part of the layers without experts.",
                  .optional = true,
                  .when = given});
  using Scores = ExpertsSpec::Scores;
  keys.push_back({.path = "model.moe.scores",
                  .codec = choice_codec<Scores>(IN_FAMILY(moe.scores),
                                                {{"softmax", Scores::softmax}, {"sigmoid", Scores::sigmoid}}),
                  .doc = "Scoring function of the router's logits: softmax, or sigmoid (DeepSeek-V3).",
                  .default_yaml = "softmax",
                  .when = given});
  keys.push_back({.path = "model.moe.scale",
                  .codec = number_codec(IN_FAMILY(moe.scale), 0, 1000, true),
                  .doc = "The sum of the routed experts' outputs is multiplied by this; that of shared ones is not.",
                  .more = "Also called routed_scaling_factor. DeepSeek-V3 has 2.5.",
                  .default_yaml = "1",
                  .when = given});
  keys.push_back({.path = "model.moe.balance",
                  .codec = number_codec(IN_FAMILY(moe.balance), 0, 1000),
                  .doc = "Coefficient of the load-balancing loss; 0: none.",
                  .more = "That loss is 1 a block when experts are equally loaded, and part of the loss of training, "
                          "not of evaluation.",
                  .default_yaml = "0.01",
                  .when = given});
}

void add_mla_keys(Schema& schema) {
  const Condition given{"model.mla.kv_rank", {}};
  schema.sections.push_back(
      {"model.mla",
       "Multi-head latent attention: keys and values are projected from a small latent vector (DeepSeek).",
       {},
       {}});
  const auto or_none = [](Codec codec, std::int64_t LatentSpec::*field) {
    codec.write = [field, write = codec.write](Workload& w) {
      return IN_FAMILY(mla).at(w).*field == 0 ? Node() : write(w);
    };
    return codec;
  };
  auto& keys = schema.keys;
  keys.push_back({.path = "model.mla.kv_rank",
                  .codec = or_none(count_codec(IN_FAMILY(mla.kv_rank), 1, 1'000'000), &LatentSpec::kv_rank),
                  .doc = "Rank of the latent vector that the keys and values of all heads are projected from.",
                  .more = "Without it there is no latent attention. docs/concepts/models.md",
                  .optional = true,
                  .when = IN_FAMILY(mla).condition()});
  keys.push_back({.path = "model.mla.q_rank",
                  .codec = or_none(count_codec(IN_FAMILY(mla.q_rank), 1, 1'000'000), &LatentSpec::q_rank),
                  .doc = "Rank of the latent vector that the queries of all heads are projected from.",
                  .more = "Without it they are projected from the token's `width` numbers.",
                  .optional = true,
                  .when = given});
  keys.push_back({.path = "model.mla.nope",
                  .codec = count_codec(IN_FAMILY(mla.nope), 1, 1'000'000),
                  .doc = "Part of the head dimension of queries and keys without positions.",
                  .when = given});
  keys.push_back(
      {.path = "model.mla.rope",
       .codec = count_codec(IN_FAMILY(mla.rope), 2, 1'000'000),
       .doc = "Part of the head dimension of queries and keys with rotary positions; keys share it among all heads.",
       .when = given});
  keys.push_back({.path = "model.mla.value",
                  .codec = count_codec(IN_FAMILY(mla.value), 1, 1'000'000),
                  .doc = "Head dimension of values; at most nope + rope.",
                  .when = given});
}

}  // namespace systole
