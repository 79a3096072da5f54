// The commands in sequence on one small run on text, as a user would type them.

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "ground/base/document.h"
#include "operate/cli/testing/run_systole.h"

namespace systole::cli {
namespace {

constexpr const char* kWorkload = R"(systole: 1
name: tiny
model: { family: gpt, layers: 1, width: 16, heads: 2, context: 32 }
data:
  train: { files: text.txt, document: line }
  held_out: { fraction: 10% }
  tokenizer: { kind: sentencepiece, vocabulary: 300 }
  folder: data
train:
  batch: 2
  steps: 4
  optimizer: { kind: adamw, rate: 1e-3 }
  precision: f32
checkpoint: { every: 2, keep: 2 }
)";

std::string some_text() {
  std::string text;
  for (int i = 0; i < 300; ++i)
    text += fmt::format("word {} of a list that goes on for a while, in its {}th line\n", i * 7 % 50, i);
  return text;
}

// One run for all tests, because it is slow.
class Commands : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    systole_ = std::make_unique<SystoleRunner>();
    systole_->write("text.txt", some_text());
    systole_->write("job.yaml", kWorkload);
    const Captured made = systole_->run({"run", "job.yaml", "--backend", "reference"});
    ASSERT_EQ(made.exit.code, 0) << made.err;
  }
  static void TearDownTestSuite() { systole_.reset(); }

  static Captured run(std::vector<std::string> arguments) { return systole_->run(std::move(arguments)); }
  static Node json(std::vector<std::string> arguments, int exit = 0) {
    arguments.push_back("--json");
    const Captured got = systole_->run(arguments);
    EXPECT_EQ(got.exit.code, exit) << got.err;
    return parse_json(got.out, "stdout").value();
  }
  static std::string text_at(const Node& node, const char* key) {
    const Node* found = node.find(key);
    return found == nullptr ? "(absent)" : found->text();
  }

  static std::unique_ptr<SystoleRunner> systole_;
};
std::unique_ptr<SystoleRunner> Commands::systole_;

TEST_F(Commands, runs_lists_it_and_rebuilds_the_same_rows_from_the_folders) {
  const Node before = json({"runs"});
  ASSERT_EQ(before.find("runs")->items().size(), 1u);
  EXPECT_EQ(text_at(before.find("runs")->items()[0], "folder"), "tiny-1");
  EXPECT_EQ(text_at(before.find("runs")->items()[0], "state"), "finished");
  EXPECT_EQ(text_at(before.find("runs")->items()[0], "steps"), "4");
  ASSERT_TRUE(std::filesystem::remove(systole_->folder() / "runs" / "index.sqlite"));
  EXPECT_EQ(json({"runs", "--rebuild"}), before);
}

TEST_F(Commands, why_finds_the_counted_flops_equal_to_the_planned) {
  const Node why = json({"why"});
  EXPECT_EQ(text_at(why, "systole"), "why");
  EXPECT_EQ(text_at(why, "steps"), "4");
  EXPECT_NE(text_at(why, "planned_flops"), "0");
  EXPECT_EQ(text_at(why, "counted_flops"), text_at(why, "planned_flops"));
  EXPECT_EQ(text_at(why, "measured_arena_bytes"), text_at(why, "planned_arena_bytes"));
  const std::string text = run({"why", "tiny-1"}).out;
  EXPECT_NE(text.find("predicted    measured   difference"), std::string::npos);
  EXPECT_NE(text.find("predictions are UNCALIBRATED"), std::string::npos) << text;
}

TEST_F(Commands, logs_hold_every_step_and_draw_the_loss) {
  const Node steps = json({"logs", "1", "--kind", "step_ended"});
  EXPECT_EQ(steps.find("events")->items().size(), 4u);
  EXPECT_EQ(json({"logs", "--kind", "step_ended", "--last", "1"}).find("events")->items().size(), 1u);
  EXPECT_NE(run({"logs", "--chart"}).out.find("┤"), std::string::npos);
}

TEST_F(Commands, ckpt_lists_verifies_and_tells_two_apart) {
  EXPECT_EQ(json({"ckpt", "list"}).find("checkpoints")->items().size(), 2u);
  EXPECT_EQ(run({"ckpt", "verify", "tiny-1"}).exit.code, 0);
  EXPECT_EQ(run({"ckpt", "diff", "tiny-1@4", "tiny-1"}).exit.code, 0);
  EXPECT_EQ(run({"ckpt", "diff", "tiny-1@2", "tiny-1@4"}).exit.code, 1);
  const Captured absent = run({"ckpt", "show", "tiny-1@3"});
  EXPECT_EQ(absent.exit.code, 2) << absent.out;
  EXPECT_TRUE(absent.err.starts_with("runs/tiny-1/checkpoints/manifests/000000000003.json: error: ")) << absent.err;
  EXPECT_NE(absent.err.find("hint: there are: 2, 4"), std::string::npos) << absent.err;
}

TEST_F(Commands, ckpt_show_names_the_tensor_that_was_meant) {
  const Node shown = json({"ckpt", "show"});
  const std::string name = text_at(shown.find("tensors")->items()[0], "name");
  EXPECT_EQ(text_at(json({"ckpt", "show", "--tensor", name}), "not_finite"), "0");
  EXPECT_EQ(run({"ckpt", "show", "--tensor", name + "x"}).exit.code, 2);
}

TEST_F(Commands, ckpt_export_writes_safetensors) {
  const Captured got = run({"ckpt", "export", "tiny-1", "out.safetensors"});
  EXPECT_EQ(got.exit.code, 0) << got.err;
  EXPECT_GT(std::filesystem::file_size(systole_->folder() / "out.safetensors"), 1000u);
}

TEST_F(Commands, ckpt_bless_marks_and_unbless_takes_it_back) {
  ASSERT_EQ(run({"ckpt", "bless", "tiny-1@2"}).exit.code, 0);
  EXPECT_EQ(text_at(json({"ckpt", "list"}).find("checkpoints")->items()[0], "blessed"), "true");
  ASSERT_EQ(run({"ckpt", "unbless", "tiny-1@2"}).exit.code, 0);
  EXPECT_EQ(text_at(json({"ckpt", "list"}).find("checkpoints")->items()[0], "blessed"), "false");
}

TEST_F(Commands, a_tokenizer_is_not_trained_in_silence) {
  const Captured built =
      run({"data", "build", "job.yaml", "--set", "data.tokenizer.vocabulary=290", "--set", "data.folder=other"});
  ASSERT_EQ(built.exit.code, 0) << built.err;
  EXPECT_TRUE(built.err.starts_with("data: training a tokenizer of 290 tokens")) << built.err;
  EXPECT_NE(built.err.find("kept in other"), std::string::npos) << built.err;
  const Captured again = run({"plan", "job.yaml", "--set", "data.tokenizer.vocabulary=290", "--set",
                              "data.folder=other", "--backend", "reference"});
  EXPECT_EQ(again.err.find("training a tokenizer"), std::string::npos) << again.err;
}

TEST_F(Commands, a_run_that_was_stopped_names_the_command_that_goes_on) {
  const Captured got = systole_->shell(
      "\"$SYSTOLE\" run job.yaml --backend reference --memory 2GiB --folder 'cut off' --set train.steps=100000 "
      "--set checkpoint.every=never 2>told >/dev/null & first=$!; n=0; "
      "while [ ! -s 'cut off/events/000.jsonl' ] && [ $n -lt 400 ]; do sleep 0.05; n=$((n+1)); done; "
      "kill $first; wait $first; code=$?; cat told; exit $code");
  EXPECT_EQ(got.exit.code, 75) << got.out;
  EXPECT_TRUE(got.out.ends_with("next: systole resume 'cut off' --memory 2GiB --backend reference\n")) << got.out;
}

TEST_F(Commands, data_shows_the_datasets_of_this_workload_alone) {
  const std::string mine = text_at(json({"data", "show", "job.yaml"}).find("datasets")->items()[0], "key");
  const std::vector<std::string> other{"job.yaml", "--set", "data.tokenizer.vocabulary=310"};
  const auto with = [&](std::vector<std::string> words) {
    words.insert(words.end(), other.begin(), other.end());
    return words;
  };
  const Captured absent = run(with({"data", "show"}));
  EXPECT_EQ(absent.exit.code, 2);
  EXPECT_NE(absent.err.find("hint: systole data build job.yaml --set data.tokenizer.vocabulary=310"), std::string::npos)
      << absent.err;
  ASSERT_EQ(run(with({"data", "build"})).exit.code, 0);
  const Node shown = json(with({"data", "show"}));
  ASSERT_EQ(shown.find("datasets")->items().size(), 1u);
  EXPECT_NE(text_at(shown.find("datasets")->items()[0], "key"), mine);
  ASSERT_TRUE(std::filesystem::remove_all(systole_->folder() / "data" /
                                          text_at(shown.find("datasets")->items()[0], "key")) > 0);
}

// The run's folder is enough, wherever it is and from any working folder.
TEST_F(Commands, generate_needs_nothing_but_the_runs_folder) {
  namespace fs = std::filesystem;
  const std::vector<std::string> sampled{"--prompt", "word", "--tokens", "8", "--backend", "reference"};
  const auto with = [&](std::vector<std::string> words) {
    words.insert(words.end(), sampled.begin(), sampled.end());
    return words;
  };
  const SystoleRunner elsewhere;
  fs::copy(systole_->folder() / "runs" / "tiny-1", elsewhere.folder() / "moved", fs::copy_options::recursive);
  const Captured there = elsewhere.run(with({"generate", "moved"}));
  EXPECT_EQ(there.exit.code, 0) << there.err;
  EXPECT_EQ(there.out, run(with({"generate", "tiny-1"})).out);
  const fs::path model = elsewhere.folder() / "moved" / "tokenizer.model";
  fs::resize_file(model, fs::file_size(model) - 1);
  const Captured hurt = elsewhere.run(with({"generate", "moved"}));
  EXPECT_EQ(hurt.exit.code, 1);
  EXPECT_NE(hurt.err.find("moved/tokenizer.model: error: "), std::string::npos) << hurt.err;
  fs::remove(model);
  const Captured gone = elsewhere.run(with({"generate", "moved"}));
  EXPECT_EQ(gone.exit.code, 2);
  EXPECT_NE(gone.err.find("hint: systole resume moved"), std::string::npos) << gone.err;
}

TEST_F(Commands, a_run_goes_on_with_the_tokenizer_that_it_began_with) {
  namespace fs = std::filesystem;
  fs::copy(systole_->folder() / "runs" / "tiny-1", systole_->folder() / "swapped", fs::copy_options::recursive);
  fs::remove(systole_->folder() / "swapped" / "tokenizer.model");
  const Captured resumed = run({"resume", "swapped", "--backend", "reference", "--set", "train.steps=5"});
  EXPECT_EQ(resumed.exit.code, 0) << resumed.err;
  EXPECT_TRUE(fs::exists(systole_->folder() / "swapped" / "tokenizer.model"));
  systole_->write("swapped/tokenizer.json", R"({"hash": "00112233445566778899aabbccddeeff"})");
  const Captured other = run({"resume", "swapped", "--backend", "reference", "--set", "train.steps=6"});
  EXPECT_EQ(other.exit.code, 2);
  EXPECT_NE(other.err.find("begun with another tokenizer"), std::string::npos) << other.err;
}

TEST_F(Commands, a_checkpoint_that_is_damaged_is_passed_over_by_name) {
  namespace fs = std::filesystem;
  fs::copy(systole_->folder() / "runs" / "tiny-1", systole_->folder() / "bitten", fs::copy_options::recursive);
  for (const auto& chunk : fs::directory_iterator(systole_->folder() / "bitten" / "checkpoints" / "chunks"))
    fs::resize_file(chunk.path(), fs::file_size(chunk.path()) - 1);
  const Captured got = run({"resume", "bitten", "--backend", "reference"});
  EXPECT_EQ(got.exit.code, 1);
  EXPECT_NE(got.err.find("error: none of the 2 checkpoints verifies"), std::string::npos) << got.err;
  EXPECT_NE(got.err.find("hint: `systole ckpt verify bitten`"), std::string::npos) << got.err;
}

TEST_F(Commands, a_run_goes_on_from_the_checkpoint_before_a_damaged_one) {
  namespace fs = std::filesystem;
  fs::copy(systole_->folder() / "runs" / "tiny-1", systole_->folder() / "one-bad", fs::copy_options::recursive);
  const fs::path newest = systole_->folder() / "one-bad" / "checkpoints" / "manifests" / "000000000004.json";
  fs::resize_file(newest, fs::file_size(newest) - 1);
  const Captured got = run({"resume", "one-bad", "--backend", "reference"});
  EXPECT_EQ(got.exit.code, 0) << got.err;
  EXPECT_NE(
      got.err.find("one-bad/checkpoints/manifests/000000000004.json: warning: the checkpoint of step 4 was passed "
                   "over: "),
      std::string::npos)
      << got.err;
}

TEST_F(Commands, a_torn_event_file_is_named_with_its_line) {
  namespace fs = std::filesystem;
  fs::copy(systole_->folder() / "runs" / "tiny-1", systole_->folder() / "torn", fs::copy_options::recursive);
  const fs::path events = systole_->folder() / "torn" / "events" / "000.jsonl";
  fs::resize_file(events, fs::file_size(events) - 10);  // like after a kill: the last line is torn
  EXPECT_EQ(run({"why", "torn"}).exit.code, 0);
  std::ofstream(events, std::ios::app) << "}\nx\n";
  const Captured got = run({"why", "torn"});
  EXPECT_EQ(got.exit.code, 1);
  EXPECT_NE(got.err.find("torn/events/000.jsonl:"), std::string::npos) << got.err;
  EXPECT_NE(got.err.find("hint: "), std::string::npos) << got.err;
}

TEST_F(Commands, two_processes_do_not_work_on_one_run) {
  const Captured got = systole_->shell(
      "\"$SYSTOLE\" run job.yaml --backend reference --folder held --set train.steps=4000 --set checkpoint.every=never "
      "2>/dev/null >/dev/null & first=$!; n=0; while [ ! -s held/events/000.jsonl ] && [ $n -lt 400 ]; do sleep 0.05; "
      "n=$((n+1)); done; \"$SYSTOLE\" resume held --backend reference; code=$?; kill $first; wait $first; exit $code");
  EXPECT_EQ(got.exit.code, 1) << got.err;
  EXPECT_NE(got.err.find("the folder 'held' is in use by process "), std::string::npos) << got.err;
  EXPECT_NE(got.err.find("hint: wait for it (--wait 10min), stop it (kill "), std::string::npos) << got.err;
}

TEST_F(Commands, data_shows_and_verifies_what_was_built) {
  EXPECT_EQ(json({"data", "show", "job.yaml"}).find("datasets")->items().size(), 1u);
  EXPECT_EQ(run({"data", "verify", "job.yaml"}).exit.code, 0);
  EXPECT_EQ(json({"data", "build", "job.yaml"}).find("made")->items().size(), 0u);
}

TEST_F(Commands, generate_is_the_same_text_for_the_same_seed) {
  const std::vector<std::string> command{"generate", "--prompt", "word",      "--tokens", "8",
                                         "--seed",   "3",        "--backend", "reference"};
  const Captured first = run(command), again = run(command);
  ASSERT_EQ(first.exit.code, 0) << first.err;
  EXPECT_TRUE(first.out.starts_with("word")) << first.out;
  EXPECT_EQ(first.out, again.out);
  std::vector<std::string> other = command;
  other.insert(other.end(), {"--temperature", "-1"});
  EXPECT_EQ(run(other).exit.code, 2);
}

TEST_F(Commands, generate_cuts_by_min_p_and_penalizes_repetition) {
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> command{"generate",     "--prompt", "word",      "--tokens", "20",
                                     "--min-tokens", "20",       "--backend", "reference"};
    command.insert(command.end(), more.begin(), more.end());
    return run(command);
  };
  const Captured greedy = with({"--temperature", "0"});
  ASSERT_EQ(greedy.exit.code, 0) << greedy.err;
  EXPECT_EQ(with({"--min-p", "1"}).out, greedy.out) << "only the likeliest are as likely as it is";
  EXPECT_NE(with({"--min-p", "0"}).out, greedy.out);
  const Captured penalized = with({"--temperature", "0", "--repetition-penalty", "100"});
  EXPECT_EQ(penalized.exit.code, 0) << penalized.err;
  EXPECT_NE(penalized.out, with({"--temperature", "0", "--repetition-penalty", "0.01"}).out);
  const Captured zero = with({"--repetition-penalty", "0"});
  EXPECT_EQ(zero.exit.code, 2);
  EXPECT_NE(zero.err.find("repetition_penalty is 0, must be between 0.01 and 100"), std::string::npos) << zero.err;
}

TEST_F(Commands, show_prints_graph_program_and_schedule) {
  for (const char* what : {"graph", "program", "schedule", "topology"}) {
    const Captured got = run({"show", what, "job.yaml", "--backend", "reference"});
    EXPECT_EQ(got.exit.code, 0) << got.err;
    EXPECT_NE(got.out.find(what), std::string::npos) << got.out.substr(0, 300);
  }
  const Captured step = run({"show", "stablehlo", "job.yaml", "--backend", "reference"});
  EXPECT_TRUE(step.out.starts_with("module @step ")) << step.out.substr(0, 300) << step.err;
  const Captured update = run({"show", "stablehlo", "job.yaml", "--function", "update", "--backend", "reference"});
  EXPECT_TRUE(update.out.starts_with("module @update ")) << update.out.substr(0, 300) << update.err;
  const Captured absent = run({"show", "graph", "job.yaml", "--function", "nope", "--backend", "reference"});
  EXPECT_EQ(absent.exit.code, 2);
  EXPECT_NE(absent.err.find("hint: valid: forward, "), std::string::npos) << absent.err;
}

TEST_F(Commands, check_says_well_and_reads_standard_input) {
  EXPECT_EQ(run({"check", "job.yaml", "--backend", "reference"}).exit.code, 0);
  EXPECT_EQ(systole_->run({"check", "-", "--backend", "reference"}, kWorkload).exit.code, 0);
  EXPECT_EQ(systole_->run({"check", "-", "--backend", "reference"}, "systole: 1\n").exit.code, 2);
}

TEST_F(Commands, a_folder_that_holds_a_run_is_not_written_over) {
  const Captured got = run({"run", "job.yaml", "--backend", "reference", "--folder", "runs/tiny-1"});
  EXPECT_EQ(got.exit.code, 1);
  EXPECT_NE(got.err.find("holds a run already"), std::string::npos) << got.err;
}

TEST_F(Commands, a_flipped_bit_is_found_and_named) {
  namespace fs = std::filesystem;
  fs::copy(systole_->folder() / "runs" / "tiny-1", systole_->folder() / "hurt", fs::copy_options::recursive);
  const fs::path chunk = fs::directory_iterator(systole_->folder() / "hurt" / "checkpoints" / "chunks")->path();
  std::fstream file(chunk, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(100);
  const char byte = static_cast<char>(file.get() ^ 1);
  file.seekp(100);
  file.put(byte);
  file.close();
  const Captured got = run({"ckpt", "verify", "hurt"});
  EXPECT_EQ(got.exit.code, 1);
  EXPECT_NE(got.out.find("damaged"), std::string::npos) << got.out;
  EXPECT_NE(got.out.find(chunk.filename().string()), std::string::npos) << got.out;
}

// No disk space for checkpoints: refused, and no run is left.
TEST(Disk, a_run_without_room_for_its_checkpoints_leaves_no_run) {
  const SystoleRunner systole;
  systole.write("text.txt", some_text());
  systole.write("job.yaml", kWorkload);
  const Captured refused = systole.run({"run", "job.yaml", "--backend", "reference", "--folder", "runs/a", "--set",
                                        "checkpoint.keep=1000000", "--set", "model.width=512"});
  EXPECT_EQ(refused.exit.code, 1) << refused.err;
  EXPECT_NE(refused.err.find("checkpoints do not fit"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("and 'runs/a/checkpoints' has room for "), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("hint: "), std::string::npos) << refused.err;
  EXPECT_NE(systole.run({"runs"}).err.find("no runs yet"), std::string::npos);
}

}  // namespace
}  // namespace systole::cli
