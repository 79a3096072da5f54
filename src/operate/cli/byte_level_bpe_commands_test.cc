// Commands on a run with a given tokenizer: what is required, kept, generated and refused.

#include <gtest/gtest.h>

#include <filesystem>

#include "ground/base/document.h"
#include "ground/base/testing/files.h"
#include "ground/base/testing/places.h"
#include "operate/cli/testing/run_systole.h"

namespace systole::cli {
namespace {

constexpr const char* kWorkload = R"(systole: 1
name: bpe
model: { family: gpt, layers: 1, width: 16, heads: 2, context: 32, vocabulary: 704 }
data:
  train: { files: text.txt, document: line }
  held_out: { fraction: 10% }
  tokenizer: { kind: byte_level_bpe, file: tok }
  folder: data
train:
  batch: 2
  steps: 3
  optimizer: { kind: adamw, rate: 1e-3 }
  precision: f32
)";

const std::filesystem::path kGolden = SYSTOLE_SOURCE_DIR "/src/execute/data/golden";

class ByteLevelBpeCommands : public testing::Test {
 protected:
  void SetUp() override {
    std::string text;
    for (int round = 0; round < 10; ++round) text += text_of(kGolden / "scripts.txt");
    systole_.write("text.txt", text);
    systole_.write("job.yaml", kWorkload);
    std::filesystem::create_directory(systole_.folder() / "tok");
    systole_.write("tok/tokenizer.json", text_of(kGolden / "llama3.json"));
  }

  std::string refusal(const std::string& set, int exit = 2) {
    const Captured got = systole_.run({"plan", "job.yaml", "--backend", "reference", "--set", set});
    EXPECT_EQ(got.exit.code, exit) << got.out << got.err;
    return got.err;
  }

  SystoleRunner systole_;
};

TEST_F(ByteLevelBpeCommands, a_run_keeps_it_and_generates_with_it) {
  const Captured ran = systole_.run({"run", "job.yaml", "--backend", "reference"});
  ASSERT_EQ(ran.exit.code, 0) << ran.err;
  std::filesystem::remove_all(systole_.folder() / "tok");
  std::filesystem::remove_all(systole_.folder() / "data");
  const Captured made = systole_.run({"generate", "bpe-1", "--backend", "reference", "--prompt", "Все люди", "--tokens",
                                      "5", "--min-tokens", "5", "--json"});
  ASSERT_EQ(made.exit.code, 0) << made.err;
  const Node told = parse_json(made.out, "stdout").value();
  EXPECT_EQ(told.find("prompt")->text(), "Все люди");
  EXPECT_EQ(told.find("tokens")->text(), "5");
}

TEST_F(ByteLevelBpeCommands, says_what_is_wrong_with_a_tokenizer) {
  std::filesystem::create_directory(systole_.folder() / "wp");
  systole_.write("wp/tokenizer.json", R"({"model": {"type": "WordPiece", "vocab": {"a": 0}}})");
  const std::string unknown = refusal("data.tokenizer.file=wp/tokenizer.json", 3);
  EXPECT_NE(unknown.find("the tokenizer's model: 'WordPiece' is not BPE\n  hint: Systole reads SentencePiece models"),
            std::string::npos)
      << unknown;
  const std::string kind = refusal("data.tokenizer.kind=sentencepiece");
  EXPECT_NE(kind.find("this tokenizer is of kind byte_level_bpe\n"), std::string::npos) << kind;
  EXPECT_NE(kind.find("\n  hint: data.tokenizer.kind: byte_level_bpe\n"), std::string::npos) << kind;
  const std::string small = refusal("model.vocabulary=600");
  EXPECT_NE(small.find("model.vocabulary is 600, the tokenizer has 700 tokens\n"), std::string::npos) << small;
}

}  // namespace
}  // namespace systole::cli
