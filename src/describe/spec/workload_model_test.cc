// The section `model` of a workload: presets and families as defaults, and the ways to give a size.

#include <gtest/gtest.h>

#include "describe/spec/schema.h"
#include "describe/spec/testing/small_workload.h"

namespace systole {
namespace {

TEST(WorkloadModel, a_preset_is_defaults_and_keys_beside_it_win) {
  const Workload w = read(replaced(kSmall, "{ family: gpt, layers: 2, width: 64, heads: 4, context: 32 }",
                                   "{ preset: gpt2-355m, context: 128 }"));
  EXPECT_STREQ(w.model.family_name(), "gpt");
  EXPECT_EQ(w.model.width(), 1024);
  EXPECT_EQ(w.model.context(), 128);
  EXPECT_EQ(w.model.vocabulary(), 50257);
  EXPECT_EQ(w.model.as<DecoderSpec>().kv_heads, 16);
  for (const std::string& name : preset_names()) EXPECT_NE(preset_values(name), nullptr);
  EXPECT_EQ(to_yaml(read(to_yaml(w))), to_yaml(w));
}

TEST(WorkloadModel, a_family_is_defaults_for_the_other_keys) {
  const Workload w = read(replaced(kSmall, "family: gpt", "family: llama"));
  EXPECT_EQ(w.model.as<DecoderSpec>().norm, Norm::rms);
  EXPECT_EQ(w.model.as<DecoderSpec>().position, Position::rotary);
  EXPECT_EQ(w.model.as<DecoderSpec>().activation, Activation::silu);
  EXPECT_TRUE(w.model.as<DecoderSpec>().gated);
  EXPECT_FALSE(w.model.as<DecoderSpec>().bias || w.model.as<DecoderSpec>().tied);
  EXPECT_EQ(w.model.as<DecoderSpec>().theta, 10000);
  EXPECT_EQ(w.model.as<DecoderSpec>().head, 16);
  EXPECT_EQ(w.model.as<DecoderSpec>().mlp, 256) << "8/3 × 64, up to a multiple of 256";
  EXPECT_EQ(w.data.kind, DataSpec::Kind::text);
  EXPECT_EQ(w.model.as<DecoderSpec>().loss, Loss::cross_entropy);
  EXPECT_EQ(to_yaml(read(to_yaml(w))), to_yaml(w));
  EXPECT_TRUE(read(replaced(kSmall, "family: gpt", "family: llama, tied: true")).model.as<DecoderSpec>().tied);
  EXPECT_NE(explain_key("model.norm").value().find("default: layer; rms with family llama"), std::string::npos);
}

TEST(WorkloadModel, the_feed_forward_is_given_in_numbers_or_as_a_multiple_and_the_later_word_wins) {
  const std::string units = replaced(kSmall, "heads: 4", "heads: 4, mlp: 100");
  EXPECT_EQ(read(units).model.as<DecoderSpec>().mlp, 100);
  EXPECT_EQ(read(units, {"", {"model.mlp_ratio=2"}}).model.as<DecoderSpec>().mlp, 128);
  EXPECT_EQ(read(units, {"", {"model.mlp_ratio=2", "model.mlp=90"}}).model.as<DecoderSpec>().mlp, 90);
  for (const Workload& w : {read(units), read(units, {"", {"model.mlp_ratio=2.5"}})}) {
    EXPECT_EQ(to_yaml(read(to_yaml(w))), to_yaml(w));
    EXPECT_EQ(read(to_yaml(w)).model.as<DecoderSpec>().mlp, w.model.as<DecoderSpec>().mlp);
  }
  // An explicit size also replaces the preset's own way of giving it.
  const std::string preset = replaced(kSmall, "{ family: gpt, layers: 2, width: 64, heads: 4, context: 32 }",
                                      "{ preset: gpt2-124m, width: 96, mlp: 100 }");
  EXPECT_EQ(read(preset).model.as<DecoderSpec>().mlp, 100);
}

TEST(WorkloadModel, heads_may_have_a_width_of_their_own) {
  const std::string own = replaced(kSmall, "heads: 4", "heads: 3, head: 24");
  EXPECT_EQ(read(own).model.as<DecoderSpec>().head, 24);
  EXPECT_EQ(to_yaml(read(to_yaml(read(own)))), to_yaml(read(own)));
}

TEST(WorkloadModel, variants_of_the_decoder_are_keys) {
  const Workload w =
      read(replaced(kSmall, "heads: 4", "heads: 4, kv_heads: 1, window: 16, parallel_blocks: true, activation: relu2"));
  EXPECT_EQ(w.model.as<DecoderSpec>().window, 16);
  EXPECT_TRUE(w.model.as<DecoderSpec>().parallel_blocks);
  EXPECT_EQ(w.model.as<DecoderSpec>().activation, Activation::relu2);
  EXPECT_EQ(to_yaml(read(to_yaml(w))), to_yaml(w));
  EXPECT_EQ(to_yaml(read(kSmall)).find("window"), std::string::npos);
}

TEST(WorkloadModel, experts_are_keys_that_mean_something_together) {
  const Workload w = read(replaced(kSmall, "family: gpt", "family: llama, moe: { experts: 6, top_k: 3, group: 8 }"));
  EXPECT_EQ(w.model.as<DecoderSpec>().moe.experts, 6);
  EXPECT_EQ(w.model.as<DecoderSpec>().moe.top_k, 3);
  EXPECT_EQ(w.model.as<DecoderSpec>().moe.group, 8);
  EXPECT_EQ(w.model.as<DecoderSpec>().moe.capacity_factor, 1.25);
  EXPECT_FALSE(w.model.as<DecoderSpec>().moe.dropless);
  EXPECT_EQ(to_yaml(read(to_yaml(w))), to_yaml(w));
  EXPECT_NE(to_yaml(w).find("balance: 0.01"), std::string::npos);
  EXPECT_EQ(to_yaml(read(kSmall)).find("moe"), std::string::npos);
  EXPECT_EQ(read(replaced(kSmall, "family: gpt, layers: 2, width: 64, heads: 4, context: 32",
                          "preset: mixtral-8x7b, layers: 1"))
                .model.as<DecoderSpec>()
                .moe.experts,
            8);
}

TEST(WorkloadModel, latent_attention_and_layers_without_experts) {
  const std::string some =
      "family: llama, moe: { experts: 4, dense_layers: 1, dense_mlp: 96, scores: sigmoid, scale: 2.5 }, "
      "mla: { kv_rank: 16, nope: 8, rope: 4, value: 8 }";
  const Workload w = read(replaced(kSmall, "family: gpt", some));
  EXPECT_EQ(w.model.as<DecoderSpec>().moe.dense_mlp, 96);
  EXPECT_EQ(w.model.as<DecoderSpec>().moe.scores, ExpertsSpec::Scores::sigmoid);
  EXPECT_EQ(w.model.as<DecoderSpec>().mla.q_rank, 0);
  EXPECT_EQ(w.model.as<DecoderSpec>().mla.rope, 4);
  EXPECT_EQ(to_yaml(read(to_yaml(w))), to_yaml(w));
  EXPECT_EQ(to_yaml(read(kSmall)).find("mla"), std::string::npos);
  const Workload v3 =
      read(replaced(kSmall, "family: gpt, layers: 2, width: 64, heads: 4, context: 32", "preset: deepseek-v3"));
  EXPECT_EQ(to_yaml(read(to_yaml(v3))), to_yaml(v3));
}

TEST(WorkloadModel, rotary_positions_may_be_stretched) {
  const Workload w =
      read(replaced(kSmall, "family: gpt", "family: llama, theta: 5e5, rope_scaling: { kind: llama3, factor: 32 }"));
  EXPECT_EQ(w.model.as<DecoderSpec>().theta, 500000);
  EXPECT_EQ(w.model.as<DecoderSpec>().rope_scaling.factor, 32);
  EXPECT_EQ(w.model.as<DecoderSpec>().rope_scaling.high_freq_factor, 4);
  EXPECT_EQ(w.model.as<DecoderSpec>().rope_scaling.original_context, 8192);
  EXPECT_EQ(to_yaml(read(to_yaml(w))), to_yaml(w));
}

std::string message_of(const std::string& text) {
  const auto read = read_workload(text, "job.yaml");
  return read.ok() ? "accepted" : to_string(read.error());
}

TEST(WorkloadModel, a_bert_and_a_t5_have_defaults_of_their_own) {
  const std::string rest =
      " }\ndata: { train: { files: a.jsonl }, tokenizer: { vocabulary: 300 } }\ntrain: { batch: 2, steps: 3, "
      "optimizer: "
      "{ rate: 1e-3 } }\n";
  const std::string head = "systole: 1\nname: job\nmodel: { ";
  const Workload bert =
      read_workload(head + "family: bert, layers: 2, width: 8, heads: 2, context: 16" + rest, "job.yaml").value();
  EXPECT_EQ(bert.model.as<BertSpec>().activation, Activation::gelu);
  EXPECT_EQ(bert.model.as<BertSpec>().eps, 1e-12);
  EXPECT_EQ(bert.data.masked_share, 0.15);
  EXPECT_TRUE(bert.data.packing);
  EXPECT_EQ(bert.data.train.field, "text");
  EXPECT_EQ(bert.data.train.target, "");
  const Workload t5 =
      read_workload(head + "family: t5, layers: 2, width: 8, heads: 2, context: 16" + rest, "job.yaml").value();
  EXPECT_EQ(t5.model.as<T5Spec>().activation, Activation::relu);
  EXPECT_EQ(t5.model.as<T5Spec>().head, 4);
  EXPECT_EQ(t5.model.as<T5Spec>().mlp, 32);
  EXPECT_EQ(t5.model.as<T5Spec>().eps, 1e-6);
  EXPECT_EQ(t5.model.as<T5Spec>().decoder_layers, 2);
  EXPECT_EQ(t5.model.as<T5Spec>().target_context, 16);
  EXPECT_FALSE(t5.data.packing);
  EXPECT_EQ(t5.data.train.field, "input");
  EXPECT_EQ(t5.data.held_out.target, "target");
  const Workload preset = read_workload(head + "preset: t5-v1.1-small, vocabulary: 32128" + rest, "job.yaml").value();
  EXPECT_STREQ(preset.model.family_name(), "t5");
  EXPECT_TRUE(preset.model.as<T5Spec>().gated);
  EXPECT_FALSE(preset.model.as<T5Spec>().tied);
  EXPECT_EQ(to_yaml(read_workload(to_yaml(preset), "again.yaml").value()), to_yaml(preset));
  EXPECT_NE(message_of(head + "family: gpt, preset: bert-base" + rest).find("preset bert-base is of family bert"),
            std::string::npos);
  EXPECT_NE(message_of(head + "family: t5, layers: 2, width: 9, heads: 2, context: 16" + rest)
                .find("2 heads do not divide width 9"),
            std::string::npos);
  EXPECT_NE(message_of(head + "family: bert, layers: 2, width: 8, heads: 2, context: 16, head: 3" + rest)
                .find("model.head means nothing with model.family: bert"),
            std::string::npos);
  const std::string masking =
      " }\ndata: { masking: { hidden: 80%, random: 30% }, train: { files: a.txt }, tokenizer: { "
      "vocabulary: 300 } }\ntrain: { batch: 2, steps: 3, optimizer: { rate: 1e-3 } }\n";
  EXPECT_NE(message_of(head + "family: bert, layers: 2, width: 8, heads: 2, context: 16" + masking)
                .find("hidden and random tokens are more than all"),
            std::string::npos);
}

TEST(WorkloadModel, a_family_without_a_keys_field_has_its_default_and_keeps_nothing) {
  Workload w;
  w.model.family = MlpSpec();
  const Codec& every = schema().key("model.moe.every")->codec;
  EXPECT_TRUE(every.read(parse_yaml("3", "three").value(), w).ok());
  EXPECT_EQ(every.write(w).text(), "1");
  EXPECT_EQ(w.model.experts(), 0);
  EXPECT_EQ(w.model.context(), 0);
  EXPECT_EQ(w.model.task(), Task::regression);
  const std::string mlp =
      "systole: 1\nname: job\nmodel: { family: mlp, inputs: 4, outputs: 2, theta: 5 }\ndata: { rows: 8 }\n"
      "train: { batch: 2, steps: 3, optimizer: { rate: 1e-3 } }\n";
  EXPECT_NE(message_of(mlp).find("model.theta means nothing with model.position: learned"), std::string::npos);
}

TEST(WorkloadModel, a_family_that_is_read_anew_forgets_the_last) {
  Workload w = read(replaced(kSmall, "family: gpt", "family: llama"));
  EXPECT_TRUE(schema().key("model.family")->codec.read(parse_yaml("gpt", "gpt").value(), w).ok());
  EXPECT_STREQ(w.model.family_name(), "gpt");
  EXPECT_EQ(w.model.layers(), 0);
}

}  // namespace
}  // namespace systole
