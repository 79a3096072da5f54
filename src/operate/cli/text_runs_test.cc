// Runs on text: they go on with the data that they began with, and share one data folder.

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "operate/cli/testing/run_systole.h"

namespace systole::cli {
namespace {

constexpr const char* kJob = R"(systole: 1
name: text
model: { family: gpt, layers: 1, width: 16, heads: 2, context: 32 }
data: { train: { files: text.txt }, folder: data, tokenizer: { kind: sentencepiece, vocabulary: 300 } }
train: { batch: 2, steps: 12, optimizer: { kind: sgd, rate: 1e-2 } }
checkpoint: { every: 4 }
)";

std::string lines(const std::string& word, int count) {
  std::string text;
  for (int i = 0; i < count; ++i)
    text += word + " " + std::to_string(i * 7919 % 1000) + " of " + word + std::to_string(i % 13) + "\n";
  return text;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class TextRuns : public testing::Test {
 protected:
  void SetUp() override {
    systole_.write("job.yaml", kJob);
    systole_.write("text.txt", lines("alpha", 300));
  }
  std::string read(const std::string& file) const {
    std::ostringstream text;
    text << std::ifstream(systole_.folder() / file).rdbuf();
    return text.str();
  }
  void begin(std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"run", "job.yaml", "--backend", "reference", "--folder", "r"});
    const Captured done = systole_.run(more);
    ASSERT_EQ(done.exit.code, 0) << done.err;
    lock_ = read("r/lock.json");
  }
  Captured go_on(std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"resume", "r", "--backend", "reference", "--set", "train.steps=14"});
    return systole_.run(more);
  }
  void expect_refused(const Captured& got, const std::string& message) const {
    EXPECT_EQ(got.exit.code, 2) << got.out << got.err;
    EXPECT_TRUE(has(got.err, message)) << got.err;
    EXPECT_TRUE(has(got.err, "hint: put it back as it was, or begin a new run: systole run r/workload.yaml\n"))
        << got.err;
    EXPECT_EQ(read("r/lock.json"), lock_) << "it says what the run was begun with";
  }
  SystoleRunner systole_;
  std::string lock_;
};

TEST_F(TextRuns, a_vocabulary_that_the_text_cannot_fill_is_told_at_its_key) {
  for (const char* wrong : {"260", "100000"}) {
    systole_.write("wrong.yaml", std::string(kJob).replace(std::string(kJob).find("300"), 3, wrong));
    const Captured got = systole_.run({"data", "build", "wrong.yaml"});
    EXPECT_EQ(got.exit.code, 2) << got.err;
    EXPECT_TRUE(has(got.err, "\nwrong.yaml:4:97: error: data.tokenizer.vocabulary: ")) << got.err;
    EXPECT_TRUE(has(got.err, fmt::format("error: data.tokenizer.vocabulary: cannot train a bpe tokenizer of {} tokens "
                                         "on this text: ",
                                         wrong)))
        << got.err;
    const std::string hint = "hint: data.tokenizer.vocabulary: ";
    const std::size_t at = got.err.find(hint);
    ASSERT_NE(at, std::string::npos) << got.err;
    const std::string fits = got.err.substr(at + hint.size(), got.err.find(',', at) - at - hint.size());
    const Captured built = systole_.run({"data", "build", "job.yaml", "--set", "data.tokenizer.vocabulary=" + fits});
    EXPECT_EQ(built.exit.code, 0) << built.err;
  }
}

TEST_F(TextRuns, go_on_in_the_text_that_they_were_begun_with) {
  begin();
  systole_.write("text.txt", lines("omega", 300));
  const Captured other = go_on();
  expect_refused(other, "the text is another than the run was begun with (dataset ");
  EXPECT_TRUE(has(other.err, "text.txt'")) << other.err;
  EXPECT_TRUE(has(other.err, "r/workload.yaml:")) << "its place: " << other.err;
  EXPECT_FALSE(has(other.err, "training a tokenizer")) << other.err;
  EXPECT_EQ(systole_.shell("ls data/*/tokens.json | wc -l").out, "1\n") << "nothing was built of it";
  expect_refused(systole_.run({"run", "job.yaml", "--backend", "reference", "--folder", "r", "--or-resume", "--set",
                               "train.steps=14"}),
                 "the text is another than the run was begun with (dataset ");
  systole_.write("text.txt", lines("alpha", 300));
  const Captured same = go_on();
  EXPECT_EQ(same.exit.code, 0) << same.err;
  EXPECT_TRUE(has(same.out, "finished at step 14")) << same.out;
}

TEST_F(TextRuns, begin_from_another_in_its_text_alone) {
  begin();
  const auto from = [&](const std::string& folder) {
    return systole_.run({"run", "job.yaml", "--backend", "reference", "--folder", folder, "--set", "resume.from=r@8",
                         "--set", "train.steps=12"});
  };
  const Captured same = from("s");
  EXPECT_EQ(same.exit.code, 0) << same.err;
  EXPECT_EQ(systole_.run({"ckpt", "diff", "r", "s"}).exit.code, 0) << "its place in the data goes along";
  systole_.write("text.txt", lines("omega", 300));
  const Captured other = from("t");
  EXPECT_EQ(other.exit.code, 2) << other.err;
  EXPECT_TRUE(has(other.err, "the text is another than 'r' was trained on (dataset ")) << other.err;
  EXPECT_TRUE(has(other.err, "job.yaml:4:")) << other.err;
  EXPECT_TRUE(has(other.err, "hint: put it back as it was, or take resume.from out to begin anew")) << other.err;
  EXPECT_FALSE(std::filesystem::exists(systole_.folder() / "t"));
}

TEST_F(TextRuns, may_have_their_text_moved) {
  begin();
  std::filesystem::rename(systole_.folder() / "text.txt", systole_.folder() / "moved.txt");
  std::filesystem::create_symlink("moved.txt", systole_.folder() / "text.txt");
  const Captured same = go_on();
  EXPECT_EQ(same.exit.code, 0) << same.err;
}

TEST_F(TextRuns, exact_ones_and_those_of_ranks_too) {
  begin({"--set", "train.exact=true", "--set", "train.logical_shards=2", "--ranks", "2"});
  systole_.write("text.txt", lines("omega", 300));
  expect_refused(go_on({"--ranks", "2"}), "the text is another than the run was begun with (dataset ");
  expect_refused(go_on({"--ranks", "1"}), "the text is another than the run was begun with (dataset ");
}

TEST_F(TextRuns, held_out_text_and_a_tokenizers_file_are_of_the_data) {
  systole_.write("held.txt", lines("beta", 30));
  systole_.write("job.yaml", std::string(kJob).replace(std::string(kJob).find("folder: data"), 12,
                                                       "folder: data, held_out: { files: held.txt }"));
  begin();
  systole_.write("held.txt", lines("gamma", 30));
  expect_refused(go_on(), "the text is another than the run was begun with (dataset ");
  // The same text with a tokenizer from a file.
  const Captured other = systole_.shell(
      "cp r/tokenizer.model own.model && \"$SYSTOLE\" run job.yaml --backend reference --folder own --set "
      "data.tokenizer='{kind: sentencepiece, file: own.model}' --set model.vocabulary=320 && sed -i 's/alpha/omega/' "
      "text.txt && \"$SYSTOLE\" data build job.yaml --set data.folder=data2 && cp data2/*/tokenizer.model own.model && "
      "sed -i 's/omega/alpha/' text.txt && \"$SYSTOLE\" resume own --backend reference");
  EXPECT_EQ(other.exit.code, 2) << other.out << other.err;
  EXPECT_TRUE(has(other.err, "the tokenizer is another than the run was begun with (dataset ")) << other.err;
}

// Like tasks of an array: the first one builds, the others wait and say so, and all train.
TEST_F(TextRuns, ten_at_once_share_a_data_folder) {
  const std::string ten =
      "for i in 0 1 2 3 4 5 6 7 8 9; do \"$SYSTOLE\" run job.yaml --backend reference --set train.seed=$i --set "
      "train.steps=2 --folder $1$i --or-resume >$1$i.out 2>&1 & p=\"$p $!\"; done; for q in $p; do wait $q; echo $?; "
      "done";
  const auto together = [&](const std::string& name) {
    const Captured done = systole_.shell("set -- " + name + "; p=; " + ten);
    EXPECT_EQ(done.out, "0\n0\n0\n0\n0\n0\n0\n0\n0\n0\n") << systole_.shell("cat " + name + "?.out").out;
    return systole_.shell("cat " + name + "?.out").out;
  };
  together("a");
  EXPECT_FALSE(has(together("b"), "data: waiting")) << "finished data needs no lock";
}

TEST_F(TextRuns, that_begin_at_once_have_names_of_their_own) {
  const Captured done = systole_.shell(
      "for i in 0 1 2 3; do \"$SYSTOLE\" run job.yaml --backend reference --set train.steps=2 >$i.out 2>&1 & p=\"$p "
      "$!\"; done; for q in $p; do wait $q; echo $?; done; ls runs");
  EXPECT_EQ(done.out, "0\n0\n0\n0\ntext-1\ntext-2\ntext-3\ntext-4\n") << systole_.shell("cat ?.out").out;
  EXPECT_EQ(systole_.run({"run", "job.yaml", "--memory", "1MiB"}).exit.code, 1);
  EXPECT_EQ(systole_.shell("ls runs").out, "text-1\ntext-2\ntext-3\ntext-4\n") << "what did not begin has no name";
}

// A lock held by another process: by flock, in its own shell.
constexpr const char* kHolder =
    "mkdir -p data; flock data/lock sh -c 'echo $$ >data/lock; touch held; exec sleep 60' & "
    "while [ ! -e held ]; do sleep 0.02; done; holder=$(cat data/lock); ";
constexpr const char* kWaiter =
    "\"$SYSTOLE\" run job.yaml --backend reference --folder r >out 2>&1 & waiter=$!; "
    "n=0; while ! grep -q waiting out && [ $n -lt 500 ]; do sleep 0.02; n=$((n+1)); done; ";

TEST_F(TextRuns, a_waiter_says_so_and_obeys_signals) {
  for (const auto& [signal, code] : {std::pair("TERM", "76"), std::pair("INT", "130")}) {
    const Captured done = systole_.shell(std::string(kHolder) + kWaiter + "kill -" + signal +
                                         " $waiter; wait $waiter; echo $?; kill $holder; wait; rm -f held; cat out");
    EXPECT_TRUE(done.out.starts_with(code)) << done.out << done.err;
    EXPECT_TRUE(has(done.out, "data: waiting for process ")) << done.out;
    EXPECT_EQ(systole_.shell("grep -c 'data: waiting' out").out, "1\n") << done.out;
    EXPECT_FALSE(std::filesystem::exists(systole_.folder() / "r"));
  }
}

TEST_F(TextRuns, a_dead_builders_lock_is_taken_over) {
  const Captured done =
      systole_.shell(std::string(kHolder) + kWaiter + "kill -9 $holder; wait $waiter; echo $?; cat out");
  EXPECT_TRUE(done.out.starts_with("0\n")) << done.out << done.err;
  EXPECT_TRUE(has(done.out, "data: waiting")) << done.out;
  EXPECT_TRUE(has(done.out, "finished at step 12")) << done.out;
}

TEST_F(TextRuns, a_file_with_brackets_in_its_name_is_itself) {
  systole_.write("data[1].txt", lines("alpha", 300));
  const Captured built = systole_.run({"data", "build", "job.yaml", "--set", "data.train.files=\"data[1].txt\""});
  EXPECT_EQ(built.exit.code, 0) << built.err;
  const Captured absent = systole_.run({"data", "build", "job.yaml", "--set", "data.train.files=\"data[2].txt\""});
  EXPECT_EQ(absent.exit.code, 2);
  EXPECT_TRUE(has(absent.err, "a bracket itself is written [[]: data[[]2].txt")) << absent.err;
}

}  // namespace
}  // namespace systole::cli
