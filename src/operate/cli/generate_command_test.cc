// What `systole generate` reports, and the file that it writes.

#include <gtest/gtest.h>

#include <filesystem>

#include "ground/base/document.h"
#include "ground/base/testing/files.h"
#include "operate/cli/testing/run_systole.h"

namespace systole::cli {
namespace {

class GenerateCommandLine : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::copy(SYSTOLE_SOURCE_DIR "/src/execute/weights/golden/gpt2", systole_.folder() / "model");
  }
  Captured generate(std::vector<std::string> more) const {
    std::vector<std::string> words{"generate",      "model", "--backend", "reference", "--prompt",     "All",
                                   "--temperature", "0",     "--tokens",  "4",         "--min-tokens", "4"};
    words.insert(words.end(), more.begin(), more.end());
    return systole_.run(words);
  }

  SystoleRunner systole_;
};

TEST_F(GenerateCommandLine, reports_device_load_first_token_and_generation) {
  const Captured said = generate({});
  ASSERT_EQ(said.exit.code, 0) << said.err;
  EXPECT_NE(said.err.find("on reference: loaded in "), std::string::npos) << said.err;
  EXPECT_NE(said.err.find(", first token after "), std::string::npos) << said.err;
  EXPECT_NE(said.err.find("4 tokens in "), std::string::npos) << said.err;
  const Captured document = generate({"--json"});
  const Node node = parse_json(document.out, "stdout").value();
  EXPECT_EQ(node.text_at("device"), "reference");
  const double first = node.find("first_token_s")->as_double().value();
  EXPECT_GT(node.find("load_s")->as_double().value(), 0);
  EXPECT_GT(first, 0);
  EXPECT_LE(first, node.find("seconds_s")->as_double().value());
  EXPECT_TRUE(node.find("out")->is_null());
  // From the start of the process to the first token, without gaps.
  const Node& start = *node.find("start");
  ASSERT_EQ(start.keys(), (std::vector<std::string>{"process_s", "read_s", "device_s", "prompt_s", "compile_s",
                                                    "weights_s", "first_token_s", "total_s"}));
  double sum = 0;
  for (const Node::Entry& phase : start.entries().first(7)) sum += phase.value.as_double().value();
  EXPECT_EQ(sum, start.find("total_s")->as_double().value());
  EXPECT_GE(start.find("first_token_s")->as_double().value(), first);
  EXPECT_GE(sum, first + node.find("load_s")->as_double().value());
}

TEST_F(GenerateCommandLine, keeps_keys_and_values_in_bf16) {
  const Captured said = generate({"--json", "--cache-type", "bf16"});
  ASSERT_EQ(said.exit.code, 0) << said.err;
  EXPECT_EQ(parse_json(said.out, "stdout").value().text_at("cache_type"), "bf16");
  const Captured wrong = generate({"--cache-type", "f16"});
  EXPECT_EQ(wrong.exit.code, 2) << wrong.err;
  EXPECT_NE(wrong.err.find("--cache-type"), std::string::npos) << wrong.err;
}

TEST_F(GenerateCommandLine, takes_any_number_of_tokens) {
  const Captured said = systole_.run({"generate", "model", "--backend", "reference", "--prompt", "All", "--temperature",
                                      "0", "--tokens", "9223372036854775807"});
  EXPECT_EQ(said.exit.code, 0) << said.err;
}

TEST_F(GenerateCommandLine, writes_the_text_to_a_file) {
  const std::string text = generate({}).out;
  systole_.write("answer.txt", "what was there");
  systole_.write("answer.txt.part", "of the user");
  const Captured said = generate({"--out", "answer.txt"});
  ASSERT_EQ(said.exit.code, 0) << said.err;
  EXPECT_EQ(said.out, "");
  EXPECT_EQ(text_of(systole_.folder() / "answer.txt"), text);
  EXPECT_EQ(text_of(systole_.folder() / "answer.txt.part"), "of the user");
  std::filesystem::remove(systole_.folder() / "answer.txt.part");
  for (const auto& file : std::filesystem::directory_iterator(systole_.folder()))
    EXPECT_NE(file.path().extension(), ".part") << file.path();
  EXPECT_NE(said.err.find("; text in answer.txt"), std::string::npos) << said.err;
  EXPECT_EQ(parse_json(generate({"--out", "answer.txt", "--json"}).out, "stdout").value().text_at("out"), "answer.txt");
}

TEST_F(GenerateCommandLine, writes_to_no_folder_and_no_device) {
  std::filesystem::create_directory(systole_.folder() / "folder");
  for (const char* path : {"folder", "folder/", "/dev/null", "none/answer.txt"}) {
    const Captured said = generate({"--out", path});
    EXPECT_NE(said.exit.code, 0) << path;
    EXPECT_NE(said.err.find(path), std::string::npos) << said.err;
    EXPECT_EQ(said.out, "") << path;
  }
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  EXPECT_TRUE(std::filesystem::is_empty(systole_.folder() / "folder"));
}

}  // namespace
}  // namespace systole::cli
