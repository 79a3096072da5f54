// Commands on imported weights: the golden models of tools/oracles/make_models.py generate what `transformers`
// generated, begin a run, and are exported from it bit for bit.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "execute/checkpoint/safetensors.h"
#include "execute/weights/testing/gguf_of_folder.h"
#include "ground/base/document.h"
#include "ground/base/testing/files.h"
#include "ground/base/testing/places.h"
#include "operate/cli/testing/run_systole.h"

namespace systole::cli {
namespace {

const std::filesystem::path kGolden = SYSTOLE_SOURCE_DIR "/src/execute/weights/golden";

constexpr const char* kWorkload = R"(systole: 1
name: tuned
model: { weights: model }
data:
  train: { files: text.txt }
  folder: data
train:
  batch: 2
  steps: 2
  optimizer: { kind: adamw, rate: RATE }
  precision: f32
)";

class Weights : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    systole_.write("text.txt", text_of(kGolden.parent_path().parent_path() / "data" / "golden" / "scripts.txt"));
    std::filesystem::copy(kGolden / name(), systole_.folder() / "model");
    std::filesystem::permissions(systole_.folder() / "model", std::filesystem::perms::owner_all);
    write_job("1e-30");  // too small to change a weight
  }
  virtual std::string name() const { return GetParam(); }
  void write_job(const std::string& rate) {
    std::string job = kWorkload;
    job.replace(job.find("RATE"), 4, rate);
    systole_.write("job.yaml", job);
  }
  // The bytes after the golden prompt.
  std::string generated(const std::string& from, const std::string& backend) {
    const Node told = parse_json(text_of(kGolden / name() / "expected.json"), "expected.json").value();
    const Captured got = systole_.run({"generate", from, "--backend", backend, "--temperature", "0", "--tokens", "30",
                                       "--min-tokens", "30", "--prompt", told.find("text")->text()});
    EXPECT_EQ(got.exit.code, 0) << got.err;
    EXPECT_TRUE(got.out.starts_with(told.find("text")->text())) << got.out;
    return got.out.substr(std::min(got.out.size(), told.find("text")->text().size()));
  }
  std::string expected() {
    const Node told = parse_json(text_of(kGolden / name() / "expected.json"), "expected.json").value();
    std::string bytes;
    for (const Node& byte : told.find("greedy_bytes")->items()) bytes += static_cast<char>(byte.as_int().value());
    return bytes + "\n";
  }

  // The export of `tuned-1` equals its imported weights.
  void come_back() {
    std::filesystem::rename(systole_.folder() / "model", systole_.folder() / "gone");  // the run is self-contained
    const Captured out = systole_.run({"ckpt", "export", "tuned-1", "--to", "back", "--shard-size", "10KB"});
    ASSERT_EQ(out.exit.code, 0) << out.err;
    EXPECT_TRUE(std::filesystem::exists(systole_.folder() / "back" / "model.safetensors.index.json")) << out.out;
    const Captured whole = systole_.run({"ckpt", "export", "tuned-1", "--to", "whole"});
    ASSERT_EQ(whole.exit.code, 0) << whole.err;
    for (const char* file : {"config.json", "tokenizer.json", "model.safetensors"}) {
      if (!std::filesystem::exists(systole_.folder() / "gone" / file)) continue;  // with its own shards
      EXPECT_EQ(text_of(systole_.folder() / "whole" / file), text_of(systole_.folder() / "gone" / file)) << file;
    }
    EXPECT_EQ(generated("back", "reference"), expected());
    EXPECT_EQ(generated("whole", "reference"), expected());
  }

  SystoleRunner systole_;
};

TEST_P(Weights, GenerateWhatTransformersGenerates) {
  EXPECT_EQ(generated("model", "reference"), expected());
#ifdef SYSTOLE_HAS_CPU
  EXPECT_EQ(generated("model", "cpu"), expected());
#endif
}

TEST_P(Weights, BeginARunAndComeBackBitForBit) {
  const Captured ran =
      systole_.run({"run", "job.yaml", "--backend", "reference", "--set", "train.optimizer.weight_decay=0"});
  ASSERT_EQ(ran.exit.code, 0) << ran.err;
  come_back();
}

// Each rank loads its share of the weights.
TEST_P(Weights, BeginARunOfRanksAndComeBackBitForBit) {
  const Captured ran = systole_.run({"run", "job.yaml", "--backend", "reference", "--in-process", "--set",
                                     "mesh={fsdp: 2, model: 2}", "--set", "train.optimizer.weight_decay=0"});
  ASSERT_EQ(ran.exit.code, 0) << ran.err;
  come_back();
}

INSTANTIATE_TEST_SUITE_P(Golden, Weights, testing::Values("gpt2", "llama", "llama_bf16"),
                         [](const auto& name) { return name.param; });

class WeightsOfGpt2 : public Weights {
  std::string name() const override { return "gpt2"; }
};

TEST_P(WeightsOfGpt2, AreTrainedFurther) {
  write_job("1e-3");
  ASSERT_EQ(systole_.run({"run", "job.yaml", "--backend", "reference"}).exit.code, 0);
  const Captured out = systole_.run({"ckpt", "export", "tuned-1", "--to", "whole"});
  ASSERT_EQ(out.exit.code, 0) << out.err;
  EXPECT_NE(text_of(systole_.folder() / "whole" / "model.safetensors"),
            text_of(systole_.folder() / "model" / "model.safetensors"));
  const Captured again = systole_.run({"resume", "tuned-1", "--backend", "reference", "--set", "train.steps=3"});
  EXPECT_EQ(again.exit.code, 0) << again.err;
}

TEST_P(WeightsOfGpt2, AreRefusedByName) {
  const auto refused = [&](const std::string& set, int exit = 2) {
    const Captured got = systole_.run({"plan", "job.yaml", "--backend", "reference", "--set", set});
    EXPECT_EQ(got.exit.code, exit) << got.out << got.err;
    return got.err;
  };
  EXPECT_NE(refused("model.layers=3").find("model.layers is 3, and the weights in 'model' have 2\n"),
            std::string::npos);
  EXPECT_NE(refused("model.weights=gone").find("model.weights: "), std::string::npos);
  std::string config = text_of(kGolden / "gpt2" / "config.json");
  config.replace(config.find("\"n_layer\": 2"), 12, "\"n_layer\": 1");
  systole_.write("model/config.json", config);
  const std::string extra = refused("train.steps=3");
  EXPECT_NE(
      extra.find("the weights in 'model' are not this model's: tensor 'transformer.h.1.attn.c_attn.bias' ([48]) is "
                 "no part of this model"),
      std::string::npos)
      << extra;
  std::filesystem::resize_file(systole_.folder() / "model" / "model.safetensors", 3000);
  EXPECT_NE(refused("train.steps=3", 1).find("model/model.safetensors"), std::string::npos);
}

TEST_P(WeightsOfGpt2, AreLocked) {
  const auto run = [&](const std::string& folder) {
    return systole_.run({"run", "job.yaml", "--backend", "reference", "--locked", "--folder", folder});
  };
  ASSERT_EQ(systole_.run({"lock", "job.yaml", "--backend", "reference"}).exit.code, 0);
  const Captured same = run("same");
  EXPECT_EQ(same.exit.code, 0) << same.err;
  EXPECT_EQ(text_of(systole_.folder() / "same" / "lock.json"), text_of(systole_.folder() / "job.lock"));
  std::string bytes = text_of(kGolden / "gpt2" / "model.safetensors");
  bytes.back() ^= 1;  // in a tensor's data, not in the header
  systole_.write("model/model.safetensors", bytes);
  const Captured other = run("other");
  EXPECT_EQ(other.exit.code, 2) << other.out;
  EXPECT_NE(other.err.find("error: --locked: imported_weights is '"), std::string::npos) << other.err;
  EXPECT_NE(other.err.find("hint: put the files of model.weights back as they were"), std::string::npos) << other.err;
  EXPECT_FALSE(std::filesystem::exists(systole_.folder() / "other"));
}

constexpr const char* kPointer =
    "version https://git-lfs.github.com/spec/v1\noid sha256:"
    "0000000000000000000000000000000000000000000000000000000000000000\nsize 2471645608\n";

TEST_P(WeightsOfGpt2, ThatGitLfsDidNotFetchAreNamed) {
  for (const char* file : {"model.safetensors", "tokenizer.json", "config.json", "tokenizer_config.json"}) {
    const bool there = std::filesystem::exists(systole_.folder() / "model" / file);
    const std::string was = text_of(systole_.folder() / "model" / file);
    systole_.write(std::string("model/") + file, kPointer);
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"generate", "model", "--backend", "reference", "--prompt", "a"},
          {"run", "job.yaml", "--backend", "reference", "--folder", "r"}}) {
      const Captured got = systole_.run(words);
      EXPECT_EQ(got.exit.code, 2) << file << got.err;
      EXPECT_NE(got.err.find(std::string("model/") + file), std::string::npos) << got.err;
      EXPECT_NE(got.err.find("this is a pointer of git-lfs, and the file itself of 2.30 GiB was not fetched"),
                std::string::npos)
          << got.err;
      EXPECT_NE(got.err.find("git lfs pull"), std::string::npos) << got.err;
    }
    if (there) systole_.write(std::string("model/") + file, was);
    if (!there) std::filesystem::remove(systole_.folder() / "model" / file);
  }
}

TEST_P(WeightsOfGpt2, ThatWereChangedRefuseARunThatGoesOn) {
  ASSERT_EQ(systole_.run({"run", "job.yaml", "--backend", "reference"}).exit.code, 0);
  const std::string good = text_of(kGolden / "gpt2" / "model.safetensors");
  std::string bytes = good;
  bytes.back() ^= 1;
  systole_.write("model/model.safetensors", bytes);
  const auto go_on = [&] {
    return systole_.run({"resume", "tuned-1", "--backend", "reference", "--set", "train.steps=3"});
  };
  const Captured other = go_on();
  EXPECT_EQ(other.exit.code, 2) << other.err;
  EXPECT_NE(other.err.find("the weights in 'model' are others than the run was begun with (hash "), std::string::npos)
      << other.err;
  EXPECT_NE(other.err.find("hint: put the folder back as it was, or begin a new run: systole run "
                           "runs/tuned-1/workload.yaml"),
            std::string::npos)
      << other.err;
  systole_.write("model/model.safetensors", good);
  EXPECT_EQ(go_on().exit.code, 0);
  std::filesystem::rename(systole_.folder() / "model", systole_.folder() / "gone");
  const Captured alone = systole_.run({"resume", "tuned-1", "--backend", "reference", "--set", "train.steps=4"});
  EXPECT_EQ(alone.exit.code, 0) << "its checkpoints have them: " << alone.err;
}

// A special token before the text is part of the prompt; one after it would end the text to continue.
TEST_P(WeightsOfGpt2, HaveWhatAPostProcessorPutsBeforeAText) {
  const auto prompt_tokens = [&](bool told) {
    const Captured got = systole_.run({"generate", "model", "--backend", "reference", "--prompt", "aaa", "--tokens",
                                       "2", "--min-tokens", "2", "--json"});
    EXPECT_EQ(got.exit.code, 0) << got.err;
    EXPECT_EQ(got.err.find("ends a text with a token that is left out here") != std::string::npos, told) << got.err;
    return parse_json(got.out, "stdout").value().find("prompt_tokens")->as_int().value();
  };
  const std::int64_t plain = prompt_tokens(false);
  std::string tokenizer = text_of(kGolden / "gpt2" / "tokenizer.json");
  const std::string none = R"("post_processor":null)";
  ASSERT_NE(tokenizer.find(none), tokenizer.npos);
  tokenizer.replace(tokenizer.find(none), none.size(),
                    R"("post_processor":{"type":"RobertaProcessing","cls":["<s>",0],"sep":["</s>",1]})");
  systole_.write("model/tokenizer.json", tokenizer);
  EXPECT_EQ(prompt_tokens(true), plain + 1);
}

// A prompt omits a byte that has no token; a dataset refuses to.
TEST_P(WeightsOfGpt2, MayHaveATokenizerWithoutRareBytes) {
  std::string tokenizer = text_of(kGolden / "gpt2" / "tokenizer.json");
  const std::string byte_4 = "\"\u0104\":";  // its letter in the byte alphabet
  ASSERT_NE(tokenizer.find(byte_4), tokenizer.npos);
  tokenizer.replace(tokenizer.find(byte_4), byte_4.size(), "\"none\":");
  systole_.write("model/tokenizer.json", tokenizer);
  const Captured got = systole_.run({"generate", "model", "--backend", "reference", "--prompt",
                                     "a\x04"
                                     "b",
                                     "--tokens", "2", "--min-tokens", "2", "--json"});
  EXPECT_EQ(got.exit.code, 0) << got.err;
  EXPECT_EQ(parse_json(got.out, "stdout").value().find("prompt")->text(), "ab");
  const Captured ran = systole_.run({"run", "job.yaml", "--backend", "reference"});
  EXPECT_EQ(ran.exit.code, 3) << ran.err;
  EXPECT_NE(ran.err.find("it has no token for byte 0x04"), std::string::npos) << ran.err;
}

INSTANTIATE_TEST_SUITE_P(Golden, WeightsOfGpt2, testing::Values("gpt2"), [](const auto& name) { return name.param; });

// The golden models as GGUF files.
class GgufWeights : public Weights {
 protected:
  void SetUp() override {
    Weights::SetUp();
    std::filesystem::remove_all(systole_.folder() / "model");
    write_file(gguf_of_folder((kGolden / name()).string()));
    std::string job = kWorkload;
    job.replace(job.find("weights: model"), 14, "weights: model.gguf");
    job.replace(job.find("RATE"), 4, "1e-30");
    systole_.write("job.yaml", job);
  }
  void write_file(const std::string& bytes) { systole_.write("model.gguf", bytes); }
  Captured generate(const std::string& from) {
    return systole_.run({"generate", from, "--backend", "reference", "--tokens", "2", "--prompt", "a"});
  }
};

TEST_P(GgufWeights, GenerateWhatTransformersGenerates) {
  EXPECT_EQ(generated("model.gguf", "reference"), expected());
#ifdef SYSTOLE_HAS_CPU
  EXPECT_EQ(generated("model.gguf", "cpu"), expected());
#endif
}

// The export is the folder that the file was converted from, in f32.
TEST_P(GgufWeights, BeginARunThatComesOutAsAFolder) {
  const Captured ran =
      systole_.run({"run", "job.yaml", "--backend", "reference", "--set", "train.optimizer.weight_decay=0"});
  ASSERT_EQ(ran.exit.code, 0) << ran.err;
  std::filesystem::rename(systole_.folder() / "model.gguf", systole_.folder() / "gone.gguf");
  const Captured out = systole_.run({"ckpt", "export", "tuned-1", "--to", "whole"});
  ASSERT_EQ(out.exit.code, 0) << out.err;
  EXPECT_EQ(generated("whole", "reference"), expected());
  if (name() == "llama_bf16") return;  // the golden ones are f32
  EXPECT_TRUE(text_of(systole_.folder() / "whole" / "model.safetensors") ==
              text_of(kGolden / name() / "model.safetensors"));
}

INSTANTIATE_TEST_SUITE_P(Golden, GgufWeights, testing::Values("gpt2", "llama", "llama_bf16"),
                         [](const auto& name) { return name.param; });

class GgufOfLlama : public GgufWeights {
  std::string name() const override { return "llama"; }
};

TEST_P(GgufOfLlama, BeginARunOfRanks) {
  const Captured ran = systole_.run({"run", "job.yaml", "--backend", "reference", "--in-process", "--set",
                                     "mesh={fsdp: 2, model: 2}", "--set", "train.optimizer.weight_decay=0"});
  ASSERT_EQ(ran.exit.code, 0) << ran.err;
  ASSERT_EQ(systole_.run({"ckpt", "export", "tuned-1", "--to", "whole"}).exit.code, 0);
  EXPECT_TRUE(text_of(systole_.folder() / "whole" / "model.safetensors") ==
              text_of(kGolden / "llama" / "model.safetensors"));
}

TEST_P(GgufOfLlama, ThatWasChangedRefusesARunThatGoesOn) {
  ASSERT_EQ(systole_.run({"run", "job.yaml", "--backend", "reference"}).exit.code, 0);
  std::string bytes = text_of(systole_.folder() / "model.gguf");
  const std::string good = bytes;
  bytes.back() ^= 1;
  write_file(bytes);
  const auto go_on = [&] {
    return systole_.run({"resume", "tuned-1", "--backend", "reference", "--set", "train.steps=3"});
  };
  const Captured other = go_on();
  EXPECT_EQ(other.exit.code, 2) << other.err;
  EXPECT_NE(other.err.find("the weights in 'model.gguf' are others than the run was begun with (hash "),
            std::string::npos)
      << other.err;
  EXPECT_NE(other.err.find("hint: put the file back as it was, or begin a new run"), std::string::npos) << other.err;
  write_file(good);
  EXPECT_EQ(go_on().exit.code, 0);
}

TEST_P(GgufOfLlama, AreRefusedByName) {
  const auto says = [&](const Captured& got, int exit, const std::string& text) {
    EXPECT_EQ(got.exit.code, exit) << got.err;
    EXPECT_NE(got.err.find(text), std::string::npos) << got.err;
  };
  says(generate("gone.gguf"), 2, "there is no file 'gone.gguf'");
  const std::string good = text_of(systole_.folder() / "model.gguf");
  write_file(good.substr(0, good.size() - 2000));
  says(generate("model.gguf"), 1, "model.gguf: error: tensor '");
  says(generate("model.gguf"), 1, "hint: the file was cut short or damaged: copy it again");
  says(systole_.run({"plan", "job.yaml", "--backend", "reference"}), 1, "model.weights: model.gguf: tensor '");
  write_file(GgufWriter().text("general.architecture", "qwen2").finish());
  says(generate("model.gguf"), 3, "model.gguf: error: a GGUF model of architecture 'qwen2' cannot be taken");
  write_file(GgufWriter().tensor("a", {256}, 10, std::string(84, 'x')).finish());
  says(generate("model.gguf"), 3, "tensor 'a' at byte 24 is of type Q2_K, which is not read");
  write_file("{}");
  for (const std::vector<std::string>& words : {std::vector<std::string>{"generate", "model.gguf"},
                                                {"serve", "model.gguf"},
                                                {"embed", "model.gguf", "--out", "vectors"},
                                                {"quantize", "model.gguf", "--out", "packed"}}) {
    const Captured got = systole_.run(words);
    says(got, 1, "model.gguf: error: the file ends at byte 2, in its first four bytes");
    EXPECT_EQ(got.err.find("imported"), std::string::npos) << "of a workload that nobody wrote: " << got.err;
  }
  std::string extra = good;
  const std::string named = "blk.1.ffn_up.weight", other = "blk.7.ffn_up.weight";
  ASSERT_NE(extra.find(named), extra.npos);
  extra.replace(extra.find(named), named.size(), other);
  write_file(extra);
  says(generate("model.gguf"), 2,
       "the weights in 'model.gguf' are not this model's: tensor 'blk.1.ffn_up.weight' ([40, 16]) is missing");
}

INSTANTIATE_TEST_SUITE_P(Golden, GgufOfLlama, testing::Values("llama"), [](const auto& name) { return name.param; });

class Adapters : public Weights {};

// The export is a model without adapters, which generates what the run generates.
TEST_P(Adapters, AreMergedIntoTheWeightsThatComeOut) {
  write_job("0.05");
  const Captured ran = systole_.run({"run", "job.yaml", "--backend", "reference", "--set",
                                     "model.adapters={rank: 2, scale: 3}", "--set", "train.steps=4"});
  ASSERT_EQ(ran.exit.code, 0) << ran.err;
  const Captured out = systole_.run({"ckpt", "export", "tuned-1", "--to", "whole"});
  ASSERT_EQ(out.exit.code, 0) << out.err;
  EXPECT_NE(out.err.find("its adapters, of rank 2, are merged into the weights"), std::string::npos) << out.err;
  EXPECT_NE(text_of(systole_.folder() / "whole" / "model.safetensors"),
            text_of(kGolden / name() / "model.safetensors"));
  if (name() == "llama") {  // a run puts bos before the prompt, and so does this model's tokenizer
    EXPECT_EQ(generated("whole", "reference"), generated("tuned-1", "reference"));
  }
  EXPECT_NE(generated("whole", "reference"), expected()) << "the adapters were trained";
}

// In PEFT's layout: base weights plus the adapters equal the merged weights.
TEST_P(Adapters, ComeOutAloneAsPeftKeepsThem) {
  write_job("0.05");
  ASSERT_EQ(systole_
                .run({"run", "job.yaml", "--backend", "reference", "--set", "model.adapters={rank: 2, scale: 3}",
                      "--set", "train.steps=4"})
                .exit.code,
            0);
  ASSERT_EQ(systole_.run({"ckpt", "export", "tuned-1", "--to", "whole"}).exit.code, 0);
  const Captured out = systole_.run({"ckpt", "export", "tuned-1", "--to", "peft", "--adapters"});
  ASSERT_EQ(out.exit.code, 0) << out.err;
  const Node about = parse_json(text_of(systole_.folder() / "peft" / "adapter_config.json"), "about").value();
  EXPECT_EQ(about.find("peft_type")->text(), "LORA");
  EXPECT_EQ(about.find("base_model_name_or_path")->text(), (systole_.folder() / "model").string());
  const auto store = open_posix_store(systole_.folder().string()).value();
  const auto base = checkpoint::SafetensorsFile::open(*store, "model/model.safetensors").value();
  const auto whole = checkpoint::SafetensorsFile::open(*store, "whole/model.safetensors").value();
  const auto peft = checkpoint::SafetensorsFile::open(*store, "peft/adapter_model.safetensors").value();
  const auto numbers = [](const checkpoint::SafetensorsFile& file, const std::string& name) {
    const auto* entry = file.header().find(name);
    EXPECT_NE(entry, nullptr) << name;
    std::vector<float> read(static_cast<std::size_t>(num_elements(entry->shape)));
    EXPECT_TRUE(file.read(name, std::as_writable_bytes(std::span(read))).ok());
    return read;
  };
  const bool conv = name() == "gpt2";
  int layers = 0;
  for (const auto& entry : peft.header().tensors) {
    const std::string a_name = entry.name, end = ".lora_A.weight";
    if (!a_name.ends_with(end)) continue;
    ++layers;
    const std::string layer = a_name.substr(17, a_name.size() - 17 - end.size());
    const std::string module = layer.substr(layer.rfind('.', layer.rfind('.') - 1) + 1);  // "attn.c_attn"
    EXPECT_EQ(std::ranges::count(about.find("target_modules")->items(), module, &Node::text), 1) << layer;
    const auto rank = static_cast<std::size_t>(entry.shape[0]), in = static_cast<std::size_t>(entry.shape[1]);
    const Node* pattern = about.find("rank_pattern")->find(module);
    const Node* alphas = about.find("alpha_pattern")->find(module);
    EXPECT_EQ((pattern != nullptr ? pattern : about.find("r"))->as_int().value(), entry.shape[0]) << layer;
    const double alpha = (alphas != nullptr ? alphas : about.find("lora_alpha"))->as_double().value();
    EXPECT_EQ(alpha / static_cast<double>(rank), 3) << layer;
    const std::vector<float> a = numbers(peft, a_name),
                             b = numbers(peft, "base_model.model." + layer + ".lora_B.weight"),
                             w = numbers(base, layer + ".weight"), merged = numbers(whole, layer + ".weight");
    const std::size_t outs = b.size() / rank;
    ASSERT_EQ(w.size(), in * outs) << layer;
    for (std::size_t o = 0; o < outs; ++o) {
      for (std::size_t i = 0; i < in; ++i) {
        double sum = 0;
        for (std::size_t k = 0; k < rank; ++k) sum += static_cast<double>(b[o * rank + k]) * a[k * in + i];
        const std::size_t at = conv ? i * outs + o : o * in + i;
        const double rounded = std::abs(merged[at]) * 0x1p-23 + 1e-12;  // rounding to f32
        ASSERT_NEAR(w[at] + alpha / static_cast<double>(rank) * sum, merged[at], rounded) << layer;
      }
    }
  }
  EXPECT_EQ(layers, conv ? 2 * 4 : 2 * 7);
  EXPECT_EQ(about.find("fan_in_fan_out")->text(), conv ? "true" : "false");
  const Captured file = systole_.run({"ckpt", "export", "tuned-1", "x.safetensors", "--adapters"});
  EXPECT_EQ(file.exit.code, 2) << file.err;
  EXPECT_NE(file.err.find("--adapters writes a folder"), std::string::npos) << file.err;
}

INSTANTIATE_TEST_SUITE_P(Golden, Adapters, testing::Values("llama", "gpt2"),
                         [](const auto& name) { return name.param; });

// The export of a run with its own tokenizer can begin another run.
TEST(Exported, BeginsARun) {
  const SystoleRunner systole;
  std::string text;
  for (int i = 0; i < 400; ++i) text += fmt::format("line {} of {}\n", i, i * 7919 % 1000);
  systole.write("text.txt", text);
  systole.write("job.yaml", R"(systole: 1
name: own
model: { family: gpt, layers: 1, width: 16, heads: 2, context: 32 }
data: { train: { files: text.txt }, folder: data, tokenizer: { vocabulary: 300 } }
train: { batch: 2, steps: 2, optimizer: { kind: sgd, rate: 1e-2 } }
)");
  systole.write("more.yaml", R"(systole: 1
name: more
model: { weights: folder }
data: { train: { files: text.txt }, folder: data }
train: { batch: 2, steps: 2, optimizer: { kind: sgd, rate: 1e-2 } }
)");
  ASSERT_EQ(systole.run({"run", "job.yaml", "--backend", "reference"}).exit.code, 0);
  ASSERT_EQ(systole.run({"ckpt", "export", "own-1", "--to", "folder"}).exit.code, 0);
  const Captured more = systole.run({"run", "more.yaml", "--backend", "reference"});
  EXPECT_EQ(more.exit.code, 0) << more.err;
  EXPECT_EQ(text_of(systole.folder() / "runs/more-1/tokenizer.model"),
            text_of(systole.folder() / "runs/own-1/tokenizer.model"));
  std::filesystem::remove(systole.folder() / "folder" / "tokenizer.model");
  const Captured none = systole.run({"run", "more.yaml", "--backend", "reference"});
  EXPECT_EQ(none.exit.code, 2);
  EXPECT_NE(none.err.find("hint: data.tokenizer.vocabulary: 300, or data.tokenizer.file"), std::string::npos)
      << none.err;
}

// A t5 answers, and only its answer is printed. Its data are pairs, with a byte-level tokenizer.
class WeightsOfT5 : public Weights {
 protected:
  void SetUp() override {
    Weights::SetUp();
    std::string pairs;
    for (int i = 0; i < 40; ++i)
      pairs += fmt::format("{{\"input\": \"question {} of {}\", \"target\": \"answer {}\"}}\n", i, i * i, i % 7);
    systole_.write("pairs.jsonl", pairs);
    systole_.write("job.yaml", R"(systole: 1
name: tuned
model: { weights: model, context: 32, target_context: 16 }
data:
  train: { files: pairs.jsonl }
  folder: data
  tokenizer: { vocabulary: 300 }
train:
  batch: 2
  steps: 2
  optimizer: { kind: adamw, rate: 1e-30, weight_decay: 0 }
  precision: f32
)");
  }
  Node told() const { return parse_json(text_of(kGolden / name() / "expected.json"), "expected.json").value(); }
  Captured answer(const std::string& backend) {
    return systole_.run({"generate", "model", "--backend", backend, "--temperature", "0", "--tokens", "20",
                         "--min-tokens", "20", "--prompt", told().find("text")->text()});
  }
};

TEST_P(WeightsOfT5, AnswerWhatTransformersAnswers) {
  for (const char* backend : {"reference", "cpu"}) {
#ifndef SYSTOLE_HAS_CPU
    if (backend == std::string("cpu")) continue;
#endif
    const Captured got = answer(backend);
    EXPECT_EQ(got.exit.code, 0) << got.err;
    EXPECT_EQ(got.out, expected()) << backend;
  }
}

TEST_P(WeightsOfT5, BeginARunAndComeBackBitForBit) {
  const Captured ran = systole_.run({"run", "job.yaml", "--backend", "reference"});
  ASSERT_EQ(ran.exit.code, 0) << ran.err;
  std::filesystem::rename(systole_.folder() / "model", systole_.folder() / "gone");
  const Captured out = systole_.run({"ckpt", "export", "tuned-1", "--to", "whole"});
  ASSERT_EQ(out.exit.code, 0) << out.err;
  for (const char* file : {"config.json", "model.safetensors"})
    EXPECT_EQ(text_of(systole_.folder() / "whole" / file), text_of(systole_.folder() / "gone" / file)) << file;
  // It answers with the tokenizer of its training.
  const Captured again = systole_.run(
      {"generate", "whole", "--backend", "reference", "--tokens", "3", "--temperature", "0", "--prompt", "question"});
  EXPECT_EQ(again.exit.code, 0) << again.err;
}

// Without data.tokenizer the pairs use the spiece.model beside the weights, which is exported unchanged.
TEST_P(WeightsOfT5, AreTrainedFurtherWithTheirOwnTokenizer) {
  std::string job = text_of(systole_.folder() / "job.yaml");
  job.erase(job.find("  tokenizer: { vocabulary: 300 }\n"), std::string("  tokenizer: { vocabulary: 300 }\n").size());
  systole_.write("job.yaml", job);
  const Captured ran = systole_.run(
      {"run", "job.yaml", "--backend", "reference", "--set", "model.context=64", "--set", "model.target_context=32"});
  ASSERT_EQ(ran.exit.code, 0) << ran.err;
  EXPECT_EQ(ran.err.find("training a tokenizer"), std::string::npos) << ran.err;
  const std::string pieces = text_of(kGolden / name() / "spiece.model");
  EXPECT_TRUE(text_of(systole_.folder() / "runs" / "tuned-1" / "tokenizer.model") == pieces);
  // A rate of 1e-30 changes no weight, so the run and its export answer like the model.
  const Captured out = systole_.run({"ckpt", "export", "tuned-1", "--to", "whole"});
  ASSERT_EQ(out.exit.code, 0) << out.err;
  EXPECT_TRUE(text_of(systole_.folder() / "whole" / "spiece.model") == pieces);
  for (const char* from : {"tuned-1", "whole"}) {
    const Captured got = systole_.run({"generate", from, "--backend", "reference", "--temperature", "0", "--tokens",
                                       "20", "--min-tokens", "20", "--prompt", told().find("text")->text()});
    EXPECT_EQ(got.exit.code, 0) << got.err;
    EXPECT_EQ(got.out, expected()) << from;
  }
}

TEST_P(WeightsOfT5, NeedTheirSentencePiece) {
  std::filesystem::remove(systole_.folder() / "model" / "spiece.model");
  EXPECT_NE(answer("reference").err.find("put spiece.model beside config.json"), std::string::npos);
  systole_.write("model/tokenizer.json",
                 R"({"version": "1.0", "model": {"type": "Unigram", "unk_id": 2, "vocab": []}})");
  const Captured unigram = answer("reference");
  EXPECT_EQ(unigram.exit.code, 3) << unigram.err;
  EXPECT_NE(unigram.err.find("'Unigram' is not BPE"), std::string::npos) << unigram.err;
  EXPECT_NE(unigram.err.find("hint: put spiece.model beside config.json"), std::string::npos) << unigram.err;
}

// transformers 5 writes such a file from tie_word_embeddings: false: the head is tied after all, and scores are
// unscaled.
TEST_P(WeightsOfT5, MayHaveAHeadThatIsTheEmbeddingUnscaled) {
  if (GetParam() != "t5") return;
  std::string config = text_of(kGolden / "t5" / "config.json");
  const std::string tied = "\"tie_word_embeddings\": true";
  ASSERT_NE(config.find(tied), config.npos);
  config.replace(config.find(tied), tied.size(), "\"scale_decoder_outputs\": false,\n  " + tied);
  systole_.write("model/config.json", config);
  const Captured said = answer("reference");
  EXPECT_EQ(said.exit.code, 0) << said.err;
  EXPECT_EQ(said.out, expected()) << "a scale moves no likeliest token";
  const Captured ran = systole_.run({"run", "job.yaml", "--backend", "reference"});
  EXPECT_EQ(ran.exit.code, 0) << ran.err;
  EXPECT_NE(ran.err.find("the head of 'model' is its embedding, unscaled; here it begins as a copy of it"),
            std::string::npos)
      << ran.err;
  // Without the keys of transformers 5 it is a file without a head.
  config.erase(config.find(tied), tied.size() + 2);
  systole_.write("model/config.json", config);
  const Captured none = answer("reference");
  EXPECT_EQ(none.exit.code, 2);
  EXPECT_NE(none.err.find("hint: where the head is the embedding: \"tie_word_embeddings\": true in config.json"),
            std::string::npos)
      << none.err;
}

INSTANTIATE_TEST_SUITE_P(Golden, WeightsOfT5, testing::Values("t5", "t5_gated"),
                         [](const auto& name) { return name.param; });

}  // namespace
}  // namespace systole::cli
