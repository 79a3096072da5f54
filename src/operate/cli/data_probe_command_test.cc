// `systole data probe`, and plans that use what it saves: a starved run is predicted, and takes what was predicted.

#include <gtest/gtest.h>

#include <cstdlib>

#include "operate/cli/testing/run_systole.h"

namespace systole::cli {
namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// The number after `key` in a text.
double number_after(const std::string& text, const std::string& key) {
  const std::size_t at = text.find(key);
  return at == std::string::npos ? -1 : std::strtod(text.c_str() + at + key.size(), nullptr);
}

class DataProbe : public testing::Test {
 protected:
  void SetUp() override {
    std::string text;
    for (int i = 0; i < 1500; ++i) text += fmt::format("alpha {} of beta{}\n", i * 7919 % 1000, i % 13);
    systole_.write("text.txt", text);
    systole_.write("job.yaml",
                   "systole: 1\nname: text\nmodel: { family: gpt, layers: 1, width: 16, heads: 2, context: 32 }\n"
                   "data: { train: { files: text.txt }, folder: data, tokenizer: { vocabulary: 300 } }\n"
                   "train: { batch: 2, steps: 20, optimizer: { kind: sgd, rate: 1e-2 } }\n");
  }
  Captured shell(const std::string& line) const {
    Captured got = systole_.shell(line);
    EXPECT_EQ(got.exit.code, 0) << line << "\n" << got.out << got.err;
    return got;
  }
  SystoleRunner systole_;
};

TEST_F(DataProbe, tells_the_stages_of_a_text_that_is_not_built_and_of_one_that_is) {
  const Captured before = shell("$SYSTOLE data probe job.yaml --seconds 0.2");
  for (const char* word : {"open", "read", "decode", "tokenize", "slowest"}) EXPECT_TRUE(has(before.out, word)) << word;
  EXPECT_TRUE(has(before.err, "the data is not built yet")) << before.err;
  shell("gzip -k text.txt && $SYSTOLE data build job.yaml --set data.train.files=text.txt.gz");
  const Captured built = shell("$SYSTOLE data probe job.yaml --set data.train.files=text.txt.gz --seconds 0.2 --json");
  for (const char* stage : {"open", "read", "decompress", "decode", "tokenize", "pack"})
    EXPECT_GT(number_after(built.out, fmt::format("\"{}\":", stage)), 0) << stage << built.out;
  EXPECT_GT(number_after(built.out, "\"rows_per_second\":"), 0) << built.out;
  EXPECT_GT(number_after(built.out, "\"needed_rows_per_second\":"), 0) << built.out;
}

// How near the prediction is to the run: feed_measured_test.cc.
TEST_F(DataProbe, a_starved_run_is_predicted_and_its_wait_named) {
  const Captured unknown = shell("$SYSTOLE plan job.yaml");
  EXPECT_TRUE(has(unknown.out, "what the reader gives is not measured: systole data probe --save measures it"))
      << unknown.out;
  shell("$SYSTOLE data probe job.yaml --seconds 0.4 --inject data=20ms --save");
  const Captured starved = shell("$SYSTOLE plan job.yaml --set data.readers=1");
  EXPECT_TRUE(has(starved.out, "feed: STARVES: 2 rows a step, ")) << starved.out;
  EXPECT_TRUE(has(starved.err, "hint: data.readers: ")) << starved.err;
  shell("$SYSTOLE run job.yaml --set data.readers=1 --inject data=20ms --folder one");
  const Captured why = shell("$SYSTOLE why one --json");
  const std::size_t at = why.out.find("\"data_wait\"");
  ASSERT_NE(at, std::string::npos) << why.out;
  EXPECT_GT(number_after(why.out.substr(at), "\"predicted_s\":"), 0.9 * 20 * 0.02) << why.out;
  const double waited = number_after(why.out.substr(at), "\"measured_s\":");
  EXPECT_NEAR(number_after(why.out, "\"held up\":"), waited, 0.1 * waited) << "what it waited for: " << why.out;
  EXPECT_TRUE(has(shell("$SYSTOLE why one").out, "rows    waited for: held up ")) << "for people";
  // Left to the plan, more threads read, and the run is the same.
  const Captured more = shell("$SYSTOLE plan job.yaml --json");
  EXPECT_GE(number_after(more.out, "\"readers\":"), 4) << more.out;
  shell("$SYSTOLE run job.yaml --inject data=20ms --folder many");
  const Captured losses = shell(
      "for r in one many; do grep -ho '\"step\":[0-9]*,\"loss\":[^,]*' $r/*.jsonl | sort | md5sum; done | uniq | wc "
      "-l");
  EXPECT_EQ(losses.out, "1\n");
}

TEST_F(DataProbe, a_probe_of_another_place_is_not_used) {
  shell("$SYSTOLE data build job.yaml && $SYSTOLE data probe job.yaml --seconds 0.2 --save");
  EXPECT_TRUE(has(shell("$SYSTOLE plan job.yaml").out, "systole data probe of ")) << "of this one";
  shell("sed -i 's/doc: \".*, /doc: \"another processor, /' .config/systole/catalog/this-machine-feed-*.yaml");
  EXPECT_TRUE(has(shell("$SYSTOLE plan job.yaml").out, " is of 'another processor, ")) << "told, and left unknown";
  const Captured wrong = systole_.shell("$SYSTOLE data probe job.yaml --inject forward=1s");
  EXPECT_EQ(wrong.exit.code, 2);
  EXPECT_TRUE(has(wrong.err, "hint: data=50ms")) << wrong.err;
}

}  // namespace
}  // namespace systole::cli
