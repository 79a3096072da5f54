#include "execute/weights/lora_adapter.h"

#include <gtest/gtest.h>

#include <cmath>

#include "execute/checkpoint/safetensors.h"
#include "execute/weights/hf_folder.h"
#include "ground/base/testing/places.h"

namespace systole {
namespace {

// golden/llama: q_proj [16, 16], k_proj [8, 16], down_proj [16, 40]; golden/gpt2: c_attn [16, 48].
ModelSpec golden(const std::string& name) {
  return workload_around(SYSTOLE_SOURCE_DIR "/src/execute/weights/golden/" + name).value().model;
}

struct Tensor {
  std::string name;  // without "base_model.model."
  Shape shape;
  double first = 1;  // element i is first + i
};

double element(const Tensor& tensor, std::int64_t i) { return tensor.first + static_cast<double>(i); }

std::unique_ptr<Store> folder_of(const std::string& config, const std::vector<Tensor>& tensors) {
  auto store = make_memory_store();
  write_whole(*store, "adapter_config.json", config).value();
  std::vector<std::vector<float>> numbers;
  for (const Tensor& tensor : tensors) {
    numbers.emplace_back();
    for (std::int64_t i = 0; i < num_elements(tensor.shape); ++i)
      numbers.back().push_back(static_cast<float>(element(tensor, i)));
  }
  std::vector<checkpoint::SafetensorsSource> sources;
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    sources.push_back(checkpoint::SafetensorsSource::of("base_model.model." + tensors[t].name, DType::f32,
                                                        tensors[t].shape, std::as_bytes(std::span(numbers[t]))));
  }
  checkpoint::write_safetensors(*store, "adapter_model.safetensors", std::move(sources), {}).value();
  return store;
}

const Tensor kQA{"model.layers.1.self_attn.q_proj.lora_A.weight", {2, 16}, 1};
const Tensor kQB{"model.layers.1.self_attn.q_proj.lora_B.weight", {16, 2}, 100};
constexpr const char* kConfig = R"({"peft_type": "LORA", "r": 2, "lora_alpha": 8, "bias": "none", "use_dora": false,
  "modules_to_save": null, "rank_pattern": {}, "alpha_pattern": {}, "target_modules": ["q_proj"]})";

TEST(LoraAdapter, HasEachLayersMatricesWithTheScaleInB) {
  const LoraAdapter adapter = read_lora_adapter(*folder_of(kConfig, {kQA, kQB}), golden("llama")).value();
  ASSERT_EQ(adapter.projections.size(), 1U);
  const auto& layers = adapter.projections.at("attn.q");
  ASSERT_EQ(layers.size(), 1U);
  const LoraAdapter::Layer& layer = layers.at(1);
  EXPECT_EQ(layer.rank, 2);
  EXPECT_EQ(adapter.rank(), 2);
  ASSERT_EQ(layer.a.size(), 32U);
  ASSERT_EQ(layer.b.size(), 32U);
  for (std::int64_t i = 0; i < 32; ++i) {
    const auto at = static_cast<std::size_t>(i);
    EXPECT_EQ(double{layer.a[at]}, element(kQA, i));
    EXPECT_EQ(double{layer.b[at]}, 4 * element(kQB, i % 16 * 2 + i / 16));
  }
}

TEST(LoraAdapter, HasAHashOfItsPlacesAndItsNumbers) {
  const auto of = [](const std::vector<Tensor>& tensors) {
    return hash_of(read_lora_adapter(*folder_of(kConfig, tensors), golden("llama")).value());
  };
  EXPECT_EQ(of({kQA, kQB}), of({kQA, kQB}));
  const Tensor b{kQB.name, kQB.shape, 101};
  EXPECT_NE(of({kQA, b}), of({kQA, kQB}));
  const Tensor other_a{"model.layers.0.self_attn.q_proj.lora_A.weight", {2, 16}, 1};
  const Tensor other_b{"model.layers.0.self_attn.q_proj.lora_B.weight", {16, 2}, 100};
  EXPECT_NE(of({other_a, other_b}), of({kQA, kQB}));
}

TEST(LoraAdapter, ScalesAreOfTheRankOrItsRootAndOfPatterns) {
  const auto last_b = [](const std::string& config, std::int64_t rank) {
    const Tensor a{"model.layers.0.mlp.down_proj.lora_A.weight", {rank, 40}},
        b{"model.layers.0.mlp.down_proj.lora_B.weight", {16, rank}};
    const LoraAdapter adapter = read_lora_adapter(*folder_of(config, {a, b}), golden("llama")).value();
    return double{adapter.projections.at("mlp.down").at(0).b[0]};  // times 1
  };
  EXPECT_FLOAT_EQ(last_b(R"({"peft_type": "LORA", "r": 4, "lora_alpha": 2.0})", 4), 0.5);
  EXPECT_FLOAT_EQ(last_b(R"({"peft_type": "LORA", "r": 4, "lora_alpha": 2, "use_rslora": true})", 4), 1);
  EXPECT_FLOAT_EQ(last_b(R"({"peft_type": "LORA", "r": 4, "lora_alpha": 2, "rank_pattern": {"down_proj": 3},
                            "alpha_pattern": {"mlp.down_proj": 6, "proj": 90}})",
                         3),
                  2);
  EXPECT_FLOAT_EQ(last_b(R"({"peft_type": "LORA", "r": 4, "lora_alpha": 2,
                            "alpha_pattern": {"mlp.down_proj": 6, "down_proj": 90}})",
                         4),
                  1.5)
      << "the first that matches";
}

TEST(LoraAdapter, AFusedLayerIsDivided) {
  const Tensor a{"transformer.h.0.attn.c_attn.lora_A.weight", {2, 16}},
      b{"transformer.h.0.attn.c_attn.lora_B.weight", {48, 2}};
  const LoraAdapter adapter =
      read_lora_adapter(*folder_of(R"({"peft_type": "LORA", "r": 2, "lora_alpha": 2, "fan_in_fan_out": true})", {a, b}),
                        golden("gpt2"))
          .value();
  std::int64_t first = 0;
  for (const char* name : {"attn.q", "attn.k", "attn.v"}) {
    const LoraAdapter::Layer& layer = adapter.projections.at(name).at(0);
    ASSERT_EQ(layer.b.size(), 32U);
    EXPECT_EQ(layer.a.size(), 32U);
    for (std::int64_t i = 0; i < 32; ++i)
      EXPECT_EQ(double{layer.b[static_cast<std::size_t>(i)]}, element(b, (first + i % 16) * 2 + i / 16)) << name;
    first += 16;
  }
}

TEST(LoraAdapter, WhatIsNotServedIsRefusedByName) {
  const ModelSpec model = golden("llama");
  const auto refused = [&](const std::string& config, const std::vector<Tensor>& tensors, ErrorKind kind,
                           const std::string& part) {
    const auto adapter = read_lora_adapter(*folder_of(config, tensors), model);
    ASSERT_FALSE(adapter.ok()) << part;
    EXPECT_EQ(adapter.error().kind, kind) << to_string(adapter.error());
    EXPECT_NE(to_string(adapter.error()).find(part), std::string::npos) << to_string(adapter.error());
  };
  const auto with = [](const std::string& more) {
    return R"({"peft_type": "LORA", "r": 2, "lora_alpha": 8, )" + more + "}";
  };
  const std::vector<Tensor> good{kQA, kQB};
  refused(R"({"peft_type": "IA3", "r": 2, "lora_alpha": 8})", good, ErrorKind::unsupported, "peft_type: 'IA3'");
  refused(with(R"("use_dora": true)"), good, ErrorKind::unsupported, "use_dora");
  refused(with(R"("bias": "all")"), good, ErrorKind::unsupported, "bias");
  refused(with(R"("modules_to_save": ["lm_head"])"), good, ErrorKind::unsupported, "modules_to_save");
  refused(with(R"("rank_pattern": {"^.*q_proj$": 2})"), good, ErrorKind::unsupported, "regular expression");
  refused(R"({"peft_type": "LORA", "r": 65, "lora_alpha": 8})", good, ErrorKind::unsupported, "r: 65 for");
  refused(R"({"peft_type": "LORA", "r": 3, "lora_alpha": 8})", good, ErrorKind::invalid, "is [2, 16]");
  refused(R"({"peft_type": "LORA", "lora_alpha": 8})", good, ErrorKind::not_found, "'r'");
  refused("{", good, ErrorKind::corrupt, "adapter_config.json");
  refused(kConfig, {kQA}, ErrorKind::not_found, "q_proj.lora_B.weight'");
  refused(kConfig, {{kQA.name, {2, 15}}, kQB}, ErrorKind::invalid, "make it [2, 16]");
  refused(kConfig, {{kQA.name, kQA.shape, HUGE_VAL}, kQB}, ErrorKind::invalid, "not finite");
  refused(R"({"peft_type": "LORA", "r": 2, "lora_alpha": 1e300})", good, ErrorKind::invalid,
          "lora_alpha: 'model.layers.1");
  refused(kConfig, {}, ErrorKind::invalid, "no tensors");
  refused(kConfig, {{"model.layers.9.self_attn.q_proj.lora_A.weight", {2, 16}}}, ErrorKind::not_found,
          "'model.layers.9.self_attn.q_proj'");
  refused(kConfig, {{"model.layers.1.self_attn.q_proj.lora_magnitude_vector", {16}}}, ErrorKind::unsupported,
          "lora_magnitude_vector");
  refused(kConfig, {{"lm_head.lora_A.weight", {2, 16}}, {"lm_head.lora_B.weight", {304, 2}}}, ErrorKind::unsupported,
          "'lm_head'");
}

TEST(LoraAdapter, ServedAreTheLargestRankAndAllProjections) {
  LoraAdapter one, other;
  one.projections["attn.q"][0].rank = 2;
  one.projections["mlp.up"][0].rank = 8;
  other.projections["attn.q"][1].rank = 4;
  const LoraAdapter all[] = {one, other};
  const ServedAdapters served = served_adapters(all);
  EXPECT_EQ(served.count, 2);
  EXPECT_EQ(served.rank, 8);
  EXPECT_EQ(served.projections, (std::vector<std::string>{"attn.q", "mlp.up"}));
  EXPECT_FALSE(served_adapters({}).any());
}

TEST(LoraAdapter, HintsNameWhatWouldBeTaken) {
  const auto missing = read_lora_adapter("/nonexistent", golden("llama"));
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.error().hint.find("--lora NAME=PATH"), std::string::npos) << to_string(missing.error());
  const auto other = read_lora_adapter(
      *folder_of(kConfig, {{"base_model.model.model.layers.9.self_attn.x.lora_A.weight", {2, 16}}}), golden("llama"));
  ASSERT_FALSE(other.ok());
  for (const char* unserved : {"embed", "lm_head"})
    EXPECT_EQ(other.error().hint.find(unserved), std::string::npos) << other.error().hint;
}

}  // namespace
}  // namespace systole
