// Folders and names that people run into: gone, too long, on another disk.
#include <gtest/gtest.h>

#include "operate/cli/testing/run_systole.h"
#include "operate/cli/testing/small_workload.h"

namespace systole::cli {
namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(OddPlaces, are_told_in_a_sentence_by_every_command) {
  const SystoleRunner systole;
  systole.write("job.yaml", kWorkload);
  systole.write("program.yaml", "systole: 1\nname: p\ncommand: [sh, -c, exit 0]\n");
  systole.write("file", "");
  const std::string n(300, 'n');
  for (const std::string& words : std::vector<std::string>{"check " + n,
                                                           "run " + n,
                                                           "data build " + n,
                                                           "doctor " + n,
                                                           "generate " + n,
                                                           "why " + n,
                                                           "logs " + n,
                                                           "resume " + n,
                                                           "lock " + n,
                                                           "plan " + n,
                                                           "import " + n,
                                                           "ckpt list " + n,
                                                           "prove " + n,
                                                           "submit " + n,
                                                           "runs " + n,
                                                           "init " + n,
                                                           "results " + n,
                                                           "render ../program.yaml --on slurm --out " + n,
                                                           "render ../program.yaml --on slurm --out ../file",
                                                           "run ../job.yaml --folder " + n,
                                                           "import ../file --out " + n + "/x",
                                                           "lock ../job.yaml --out " + n,
                                                           "plan ../job.yaml --out " + n}) {
    const Captured told = systole.shell("mkdir -p here && cd here && \"$SYSTOLE\" " + words);
    EXPECT_TRUE(told.exit.code >= 1 && told.exit.code <= 3) << words << "\n" << told.exit.code << told.err;
    EXPECT_TRUE(has(told.err, "error: ")) << words << "\n" << told.err;
    EXPECT_FALSE(has(told.err, "filesystem error") || has(told.err, "terminate")) << words << "\n" << told.err;
  }
  for (const char* words :
       {"plan ../job.yaml", "run ../job.yaml --backend reference", "data build ../job.yaml", "resume", "init",
        "import ../program.yaml --out x.yaml", "render ../program.yaml --on slurm", "check x", "runs", "why", "doctor",
        "lock ../job.yaml --out l", "submit ../program.yaml --on slurm"}) {
    const Captured told =
        systole.shell("mkdir -p gone && cd gone && rmdir ../gone && \"$SYSTOLE\" " + std::string(words));
    EXPECT_TRUE(told.exit.code >= 0 && told.exit.code <= 3) << words << "\n" << told.exit.code << told.err;
    EXPECT_FALSE(has(told.err, "filesystem error") || has(told.err, "terminate")) << words << "\n" << told.err;
  }
}

TEST(OddPlaces, checkpoints_lie_where_the_key_says) {
  for (const char* folder : {"/ELSEWHERE/c", "../c", "./c", "c/d/", "."}) {
    const SystoleRunner systole;
    std::string place = folder;
    if (place.starts_with("/ELSEWHERE")) place = systole.folder().string() + "/elsewhere/c";
    systole.write("job.yaml", std::string(kWorkload) + "checkpoint: { folder: \"" + place + "\" }\n");
    ASSERT_EQ(systole.run({"check", "job.yaml", "--backend", "reference"}).exit.code, 0);
    const Captured done = systole.run({"run", "job.yaml", "--backend", "reference"});
    ASSERT_EQ(done.exit.code, 0) << folder << done.err;
    const std::filesystem::path there =
        place[0] == '/' ? std::filesystem::path(place) : (systole.folder() / "runs/small-1" / place).lexically_normal();
    EXPECT_TRUE(std::filesystem::exists(there / "manifests/000000000004.json")) << there;
    const Captured listed = systole.run({"ckpt", "list", "small-1"});
    EXPECT_EQ(listed.exit.code, 0) << listed.err;
    const Captured more =
        systole.run({"resume", "small-1", "--backend", "reference", "--set", "train.steps=6", "--ranks", "2"});
    EXPECT_EQ(more.exit.code, 0) << folder << more.err;
    EXPECT_TRUE(std::filesystem::exists(there / "manifests/000000000006.json")) << there;
  }
}

TEST(OddPlaces, a_folder_of_checkpoints_is_of_one_run_and_must_be_there) {
  const SystoleRunner systole;
  systole.write("job.yaml", std::string(kWorkload) + "checkpoint: { folder: ../c }\n");
  ASSERT_EQ(systole.run({"run", "job.yaml", "--backend", "reference"}).exit.code, 0);
  const Captured second = systole.run({"run", "job.yaml", "--backend", "reference"});
  EXPECT_EQ(second.exit.code, 1) << second.err;
  EXPECT_TRUE(has(second.err, "holds the checkpoints of another run")) << second.err;
  std::filesystem::rename(systole.folder() / "runs/c", systole.folder() / "runs/unmounted");
  const Captured gone = systole.run({"resume", "small-1", "--backend", "reference", "--set", "train.steps=6"});
  EXPECT_EQ(gone.exit.code, 2) << gone.err;
  EXPECT_TRUE(has(gone.err, "there is no folder 'runs/c'")) << gone.err;
}

TEST(OddPlaces, a_name_with_a_space_is_a_run_like_another) {
  const SystoleRunner systole;
  systole.write("job.yaml", replaced(kWorkload, "name: small", "name: my run"));
  ASSERT_EQ(systole.run({"run", "job.yaml", "--backend", "reference"}).exit.code, 0);
  EXPECT_TRUE(has(systole.run({"runs"}).out, "my run-1  finished"));
  EXPECT_EQ(systole.run({"resume", "my run-1", "--backend", "reference", "--set", "train.steps=6"}).exit.code, 0);
  for (const char* name : {"a/b", "\"\"", "..", "-x", "a@b"}) {
    systole.write("job.yaml", replaced(kWorkload, "name: small", std::string("name: ") + name));
    const Captured refused = systole.run({"check", "job.yaml", "--backend", "reference"});
    EXPECT_EQ(refused.exit.code, 2) << name;
    EXPECT_TRUE(has(refused.err, "job.yaml:2:7: error: ") && has(refused.err, "hint: name: ")) << refused.err;
  }
}

// Behind the '@' of a name stands a step: in a folder above the run's it is a letter.
TEST(OddPlaces, an_at_sign_is_of_a_checkpoint_or_of_a_folder_above) {
  const SystoleRunner systole;
  systole.write("job.yaml", kWorkload);
  const Captured refused = systole.run({"run", "job.yaml", "--backend", "reference", "--folder", "runs/small@2"});
  EXPECT_EQ(refused.exit.code, 2) << refused.err;
  EXPECT_TRUE(has(refused.err, "hint: --folder runs/small-2\n")) << refused.err;
  ASSERT_EQ(systole.run({"run", "job.yaml", "--backend", "reference", "--folder", "me@work/r"}).exit.code, 0);
  for (const char* place : {"me@work/r", "me@work/r@4", "me@work/r/checkpoints", "me@work/r/checkpoints@4"})
    EXPECT_EQ(systole.run({"ckpt", "show", place}).exit.code, 0) << place << systole.run({"ckpt", "show", place}).err;
  ASSERT_EQ(systole.run({"run", "job.yaml", "--backend", "reference"}).exit.code, 0);
  for (const char* command : {"logs", "why", "resume"}) {
    const Captured step = systole.run({command, "small-1@4"});
    EXPECT_EQ(step.exit.code, 2) << step.err;
    EXPECT_TRUE(has(step.err, "hint: 'small-1@4' names a checkpoint; the run is 'small-1'\n")) << step.err;
  }
}

// A path for which this user has no permission, while it lives.
class Closed {
 public:
  explicit Closed(std::filesystem::path path) : path_(std::move(path)) {
    std::filesystem::permissions(path_, std::filesystem::perms::none);
  }
  ~Closed() { std::filesystem::permissions(path_, std::filesystem::perms::owner_all); }
  Closed(const Closed&) = delete;
  Closed& operator=(const Closed&) = delete;

 private:
  std::filesystem::path path_;
};

constexpr const char* kText = R"(systole: 1
name: text
model: { family: gpt, layers: 1, width: 16, heads: 2, context: 32, vocabulary: 300 }
data: { train: { files: TEXT }, folder: data, tokenizer: { kind: KIND, file: TOKENIZER } }
train: { batch: 2, steps: 12, optimizer: { kind: sgd, rate: 1e-2 } }
)";
std::string text_job(const std::string& text, const std::string& kind, const std::string& tokenizer) {
  return replaced(replaced(replaced(kText, "TEXT", text), "KIND", kind), "TOKENIZER", tokenizer);
}

TEST(OddPlaces, what_may_not_be_read_is_said_so) {
  const SystoleRunner systole;
  systole.write("job.yaml", kWorkload);
  systole.write("text.txt", "some words");
  systole.write("tokenizer.model", "none");
  systole.write("folder/tokenizer.json", "{}");
  systole.write("model/config.json", "{}");
  systole.write_secret("key", std::string(64, 'a'));
  systole.write("text.yaml", text_job("text.txt", "sentencepiece", "tokenizer.model"));
  systole.write("folder.yaml", text_job("text.txt", "byte_level_bpe", "folder"));
  systole.write("weights.yaml", replaced(kWorkload, "{ family: mlp, inputs: 4, outputs: 2 }", "{ weights: model }"));
  ASSERT_EQ(systole.run({"run", "job.yaml", "--backend", "reference", "--folder", "r"}).exit.code, 0);
  struct Case {
    const char* closed;
    std::vector<std::string> words;
    const char* key;  // that the error stands at
  };
  const std::vector<Case> cases{
      {"job.yaml", {"check", "job.yaml"}, ""},
      {"text.txt", {"check", "text.yaml"}, "data.train.files: "},
      {"tokenizer.model", {"check", "text.yaml"}, "data.tokenizer.file: "},
      {"folder", {"check", "folder.yaml"}, "data.tokenizer.file: "},
      {"folder/tokenizer.json", {"check", "folder.yaml"}, "data.tokenizer.file: "},
      {"model", {"check", "weights.yaml"}, "model.weights: "},
      {"model/config.json", {"check", "weights.yaml"}, "model.weights: "},
      {"model", {"generate", "model"}, ""},
      {"r", {"ckpt", "list", "r"}, ""},
      {"r", {"resume", "r"}, ""},
      {"r", {"logs", "r"}, ""},
      {"r/workload.yaml", {"ckpt", "show", "r"}, ""},
      {"r/checkpoints/manifests", {"ckpt", "show", "r"}, ""},
      {"r/checkpoints", {"ckpt", "show", "r/checkpoints"}, ""},
      {"key", {"ckpt", "public-key", "file:key"}, "the key file:key: "},
      {"key", {"run", "job.yaml", "--ranks", "2", "--rendezvous", "127.0.0.1:29555", "--token-file", "key"}, "--token"},
  };
  for (const Case& one : cases) {
    const Closed closed(systole.folder() / one.closed);
    const Captured got = systole.run_as_user(one.words);
    EXPECT_EQ(got.exit.code, 1) << one.closed << ": " << got.err;
    EXPECT_TRUE(has(got.err, std::string("error: ") + one.key)) << one.closed << ": " << got.err;
    EXPECT_TRUE(has(got.err, ": Permission denied\n")) << one.closed << ": " << got.err;
    EXPECT_TRUE(has(got.err, "hint: let this user read it, and enter the folders above it: chmod u+rX '"))
        << one.closed << ": " << got.err;
    EXPECT_TRUE(has(got.err, std::string(one.closed) + "'")) << one.closed << ": " << got.err;
    EXPECT_FALSE(has(got.err, "'//")) << one.closed << ": " << got.err;
  }
}

TEST(OddPlaces, a_text_that_is_a_pipe_is_not_waited_for) {
  const SystoleRunner systole;
  systole.write("text.yaml", text_job("pipe", "byte_level_bpe", "none"));
  const Captured got = systole.shell("mkfifo pipe; \"$SYSTOLE\" check text.yaml");
  EXPECT_EQ(got.exit.code, 2) << got.err;
  EXPECT_TRUE(has(got.err, "data.train.files: ") && has(got.err, "/pipe' is a device or a pipe, not a file"))
      << got.err;
  EXPECT_TRUE(has(got.err, "hint: write it into a file first\n")) << got.err;
}

TEST(OddPlaces, a_run_that_may_not_be_read_hides_no_other) {
  const SystoleRunner systole;
  systole.write("job.yaml", kWorkload);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(systole.run({"run", "job.yaml", "--backend", "reference"}).exit.code, 0);
  {
    const Closed folder(systole.folder() / "runs/small-2"), record(systole.folder() / "runs/small-3/plan.json");
    for (const std::vector<std::string>& words : {std::vector<std::string>{"runs"}, {"runs", "--rebuild"}}) {
      const Captured got = systole.run_as_user(words);
      EXPECT_EQ(got.exit.code, 0) << got.err;
      EXPECT_TRUE(has(got.out, "small-1  finished")) << got.out;
      for (const char* closed : {"runs/small-2", "runs/small-3/plan.json"}) {
        const std::size_t at = got.err.find(std::string("'") + closed);
        ASSERT_NE(at, std::string::npos) << closed << ": " << got.err;
        EXPECT_NE(got.err.find("Permission denied", at), std::string::npos) << got.err;
      }
      EXPECT_TRUE(has(got.err, "warning: a run is passed over: ")) << got.err;
    }
    EXPECT_EQ(systole.run_as_user({"logs", "small-1"}).exit.code, 0);
    EXPECT_TRUE(has(systole.run_as_user({"logs", "small-2"}).err, ": Permission denied"));
  }
  EXPECT_TRUE(has(systole.run({"runs"}).out, "small-2  finished")) << "what was passed over is read once it may be";
}

}  // namespace
}  // namespace systole::cli
