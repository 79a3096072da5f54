#include "execute/weights/hf_config.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "execute/weights/name_map.h"
#include "ground/base/testing/places.h"
#include "ground/store/store.h"

namespace systole {
namespace {

TEST(HfConfig, SaysWhetherTheWeightsTellOfTheHead) {
  const auto may = [](const std::string& entries) { return head_may_be_embedding("{" + entries + "}"); };
  EXPECT_TRUE(may(R"("model_type": "t5", "tie_word_embeddings": true, "scale_decoder_outputs": false)"));
  EXPECT_FALSE(may(R"("model_type": "t5", "tie_word_embeddings": true, "scale_decoder_outputs": true)"));
  EXPECT_FALSE(may(R"("model_type": "t5", "tie_word_embeddings": false, "scale_decoder_outputs": false)"));
  EXPECT_FALSE(may(R"("model_type": "t5", "tie_word_embeddings": false)"));
  EXPECT_FALSE(may(R"("model_type": "llama", "tie_word_embeddings": true, "scale_decoder_outputs": false)"));
  EXPECT_FALSE(head_may_be_embedding("no JSON"));
}

Result<Workload> workload(const std::string& config, const std::string& model) {
  WorkloadOptions options;
  options.weights = [&](const std::string&) { return values_of_config(config, "config.json"); };
  return read_workload("systole: 1\nname: x\nmodel: { weights: w" + model +
                           " }\ndata: { train: { files: x }, tokenizer: { vocabulary: 300 } }\n"
                           "train: { batch: 1, steps: 1, optimizer: { kind: sgd, rate: 1 } }\n",
                       "job.yaml", options);
}

std::string golden(const std::string& name) {
  const auto store = open_posix_store(SYSTOLE_SOURCE_DIR "/src/execute/weights/golden/" + name).value();
  return read_text(*store, "config.json").value();
}

TEST(HfConfig, DecidesTheModel) {
  const auto gpt = workload(golden("gpt2"), "").value().model.as<DecoderSpec>();
  EXPECT_STREQ(gpt.name(), "gpt");
  EXPECT_EQ(gpt.layers, 2);
  EXPECT_EQ(gpt.mlp, 64);
  EXPECT_EQ(gpt.context, 64);
  EXPECT_EQ(gpt.vocabulary, 304);
  EXPECT_TRUE(gpt.tied);
  const auto llama = workload(golden("llama"), ", context: 32").value().model.as<DecoderSpec>();
  EXPECT_STREQ(llama.name(), "llama");
  EXPECT_EQ(llama.kv_heads, 2);
  EXPECT_EQ(llama.mlp, 40);
  EXPECT_EQ(llama.context, 32);
  EXPECT_EQ(llama.theta, 500000);
  EXPECT_EQ(llama.rope_scaling.kind, RopeScaling::Kind::llama3);
  EXPECT_EQ(llama.rope_scaling.original_context, 16);
  EXPECT_FALSE(llama.tied);
  EXPECT_EQ(workload(golden("llama_bf16"), "").value().model.as<DecoderSpec>().head, 8);
}

TEST(HfConfig, DecidesAT5) {
  const auto t5 = workload(golden("t5"), "").value().model.as<T5Spec>();
  EXPECT_EQ(t5.layers, 2);
  EXPECT_EQ(t5.decoder_layers, 2);
  EXPECT_EQ(t5.head, 4);
  EXPECT_EQ(t5.heads, 2);
  EXPECT_EQ(t5.mlp, 20);
  EXPECT_EQ(t5.context, 512);
  EXPECT_EQ(t5.target_context, 512);
  EXPECT_EQ(t5.relative_buckets, 8);
  EXPECT_EQ(t5.relative_furthest, 20);
  EXPECT_EQ(t5.activation, Activation::relu);
  EXPECT_FALSE(t5.gated);
  EXPECT_TRUE(t5.tied);
  const auto gated = workload(golden("t5_gated"), ", context: 64, target_context: 32").value().model.as<T5Spec>();
  EXPECT_EQ(gated.layers, 1);
  EXPECT_EQ(gated.decoder_layers, 2);
  EXPECT_EQ(gated.context, 64);
  EXPECT_EQ(gated.target_context, 32);
  EXPECT_EQ(gated.activation, Activation::gelu_tanh);
  EXPECT_TRUE(gated.gated);
  EXPECT_FALSE(gated.tied);
}

// Defaults of an old config.json, and the head entries of transformers 5 for a head that is not scaled.
TEST(HfConfig, ReadsT5sOfAllAges) {
  const std::string sizes = R"("model_type": "t5", "num_layers": 3, "d_model": 8, "num_heads": 2, "d_kv": 4, "d_ff": 16,
                               "vocab_size": 320)";
  const auto old = workload("{" + sizes + "}", "").value().model.as<T5Spec>();
  EXPECT_EQ(old.decoder_layers, 3);
  EXPECT_EQ(old.relative_buckets, 32);
  EXPECT_EQ(old.relative_furthest, 128);
  EXPECT_EQ(old.eps, 1e-6);
  EXPECT_EQ(old.activation, Activation::relu);
  EXPECT_TRUE(old.tied);
  EXPECT_FALSE(workload("{" + sizes + R"(, "tie_word_embeddings": true, "scale_decoder_outputs": false})", "")
                   .value()
                   .model.as<T5Spec>()
                   .tied);
  const auto refusal = [&](const std::string& more) {
    return workload("{" + sizes + ", " + more + "}", "").error().message;
  };
  EXPECT_NE(refusal(R"("feed_forward_proj": "gated-mish")").find("feed_forward_proj is text 'gated-mish'"),
            std::string::npos);
  EXPECT_NE(refusal(R"("decoder_start_token_id": 5)").find("decoder_start_token_id is"), std::string::npos);
}

// transformers 5 looks for rope_theta in rope_parameters, then beside it.
TEST(HfConfig, FindsTheBaseOfRotaryPositions) {
  const auto with = [](const std::string& rope) {
    return workload(
        R"({"model_type": "llama", "num_hidden_layers": 1, "hidden_size": 32, "num_attention_heads": 4, "vocab_size": 320,
            "intermediate_size": 40, "max_position_embeddings": 64, )" +
            rope + "}",
        "");
  };
  const auto theta = [&](const std::string& rope) { return with(rope).value().model.as<DecoderSpec>().theta; };
  EXPECT_EQ(theta(R"("rope_parameters": {"rope_type": "default", "rope_theta": 70}, "rope_theta": 500)"), 70);
  EXPECT_EQ(theta(R"("rope_parameters": {"rope_type": "default"}, "rope_theta": 500)"), 500);
  EXPECT_EQ(theta(R"("rope_scaling": {"type": "default", "rope_theta": 70}, "rope_theta": 500)"), 70);
  EXPECT_EQ(theta(R"("rope_scaling": null, "rope_theta": 500)"), 500);
  EXPECT_EQ(theta(R"("rms_norm_eps": 1e-5)"), 10000);
  EXPECT_NE(with(R"("rope_parameters": [500])").error().message.find("config.json:2:"), std::string::npos)
      << with(R"("rope_parameters": [500])").error().message;
  EXPECT_NE(with(R"("rope_parameters": [500])").error().message.find("expected a map, found a list"), std::string::npos)
      << with(R"("rope_parameters": [500])").error().message;
  EXPECT_FALSE(with(R"("rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.5})").ok());
  EXPECT_EQ(theta(R"("rope_parameters": {"rope_type": "default", "partial_rotary_factor": 1.0})"), 10000);
}

// Models whose code is Llama's but for a few keys.
TEST(HfConfig, ReadsMistralAndQwen3) {
  const auto with = [](const std::string& more) {
    return workload(
        R"({"num_hidden_layers": 1, "hidden_size": 32, "num_attention_heads": 4, "num_key_value_heads": 2,
            "vocab_size": 320, "intermediate_size": 40, "max_position_embeddings": 64, )" +
            more + "}",
        "");
  };
  const auto mistral = with(R"("model_type": "mistral", "sliding_window": null)").value().model.as<DecoderSpec>();
  EXPECT_EQ(mistral.head, 8);
  EXPECT_FALSE(mistral.qk_norm);
  EXPECT_TRUE(with(R"("model_type": "mistral", "sliding_window": 64)").ok());
  EXPECT_NE(
      with(R"("model_type": "mistral", "sliding_window": 16)").error().message.find("sliding_window is number 16"),
      std::string::npos);
  const Workload qwen3 = with(R"("model_type": "qwen3", "head_dim": 16, "sliding_window": 16)").value();
  EXPECT_EQ(qwen3.model.as<DecoderSpec>().head, 16);
  EXPECT_TRUE(qwen3.model.as<DecoderSpec>().qk_norm);
  const std::string written = config_of(qwen3.model);
  EXPECT_NE(written.find("\"Qwen3ForCausalLM\""), std::string::npos) << written;
  EXPECT_EQ(config_of(workload(written, "").value().model), written);
  EXPECT_EQ(with(R"("model_type": "qwen3")").value().model.as<DecoderSpec>().head, 128);
  EXPECT_FALSE(with(R"("model_type": "qwen3", "use_sliding_window": true)").ok());
  const NameMap names = name_map(qwen3.model).value();
  const auto norm = std::ranges::find(names.tensors, "model.layers.0.self_attn.k_norm.weight", &MappedTensor::theirs);
  ASSERT_NE(norm, names.tensors.end());
  EXPECT_EQ(norm->ours, "blocks.0.attn.k_norm.scale");
  EXPECT_EQ(norm->shape, (Shape{16}));
}

TEST(HfConfig, IsNotContradicted) {
  const Error wrong = workload(golden("gpt2"), ", layers: 3, eps: 1e-6").error();
  EXPECT_EQ(to_string(wrong.where), "job.yaml:3:30");
  EXPECT_EQ(wrong.message.substr(0, wrong.message.find('\n')), "model.layers is 3, and the weights in 'w' have 2");
  ASSERT_EQ(wrong.others.size(), 1u);
  EXPECT_TRUE(wrong.others[0].message.starts_with("model.eps is 1e-06, and the weights in 'w' have 1e-05"))
      << wrong.others[0].message;
  EXPECT_TRUE(workload(golden("gpt2"), ", layers: 2").ok());
}

TEST(HfConfig, RefusesWhatIsNotFollowed) {
  const auto refusal = [](const std::string& config) { return workload(config, "").error().message; };
  EXPECT_TRUE(refusal(R"({"model_type": "mamba"})")
                  .starts_with("model.weights: config.json: a model of type 'mamba' cannot be taken"));
  EXPECT_TRUE(refusal("{}").starts_with("model.weights: config.json: this config.json has no model_type"));
  std::string scaled = golden("gpt2");
  scaled.replace(scaled.find("idx\": false"), 11, "idx\": true");
  EXPECT_NE(refusal(scaled).find("scale_attn_by_inverse_layer_idx is"), std::string::npos) << refusal(scaled);
  std::string rope = golden("llama");
  rope.replace(rope.find("\"llama3\""), 8, "\"yarn\"");
  EXPECT_NE(refusal(rope).find("rope_type is text 'yarn', and only default or llama3 is followed here"),
            std::string::npos)
      << refusal(rope);
  const auto llama_with = [&](const std::string& more) {
    std::string changed = golden("llama");
    return changed.insert(changed.find('{') + 1, more + ", ");
  };
  EXPECT_NE(
      refusal(llama_with(R"("partial_rotary_factor": 0.5)")).find("partial_rotary_factor is number 0.5, and only"),
      std::string::npos);
  std::string many = golden("gpt2");
  many.replace(many.find("\"n_layer\": 2"), 12, "\"n_layer\": 20000000");
  EXPECT_NE(refusal(many).find("the weights in 'w' have model.layers: 20000000 is too high"), std::string::npos)
      << refusal(many);
}

TEST(HfConfig, WritesWhatItReads) {
  for (const char* name : {"gpt2", "llama", "llama_bf16", "t5", "t5_gated"}) {
    const ModelSpec model = workload(golden(name), "").value().model;
    const ModelSpec again = workload(config_of(model), "").value().model;
    EXPECT_EQ(config_of(again), config_of(model)) << name;
    const auto expect_same = [](const auto& is, const auto& was) {
      EXPECT_EQ(is.mlp, was.mlp);
      EXPECT_EQ(is.activation, was.activation);
      EXPECT_EQ(is.tied, was.tied);
      EXPECT_EQ(is.eps, was.eps);
    };
    if (const auto* was = model.if_is<T5Spec>())
      expect_same(again.as<T5Spec>(), *was);
    else
      expect_same(again.as<DecoderSpec>(), model.as<DecoderSpec>());
  }
  const std::string ends = config_of(workload(golden("t5"), "").value().model, 2);
  EXPECT_NE(ends.find("\"eos_token_id\": 2"), std::string::npos) << ends;
  EXPECT_NE(ends.find("\"decoder_start_token_id\": 0"), std::string::npos) << ends;
}

}  // namespace
}  // namespace systole
