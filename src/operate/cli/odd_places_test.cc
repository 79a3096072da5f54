// Problem folders and names: deleted, too long, on another disk.
#include <gtest/gtest.h>
#include <unistd.h>

#include <tuple>

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

TEST(OddPlaces, a_hint_quotes_what_a_shell_would_split) {
  const SystoleRunner systole;
  systole.write("job.yaml", kWorkload);
  const std::vector<std::string> words = {"run", "job.yaml", "--backend", "reference", "--folder", "my run"};
  ASSERT_EQ(systole.run(words).exit.code, 0);
  const std::string hint = "systole resume 'my run', or ";
  EXPECT_TRUE(has(systole.run(words).err, hint + "another --folder"));
  EXPECT_TRUE(has(systole.run({"check", "my run"}).err, hint + "its my run/workload.yaml"));
  EXPECT_TRUE(has(systole.run({"why", "my job.yaml"}).err, "systole run 'my job.yaml' begins a run"));
  const std::filesystem::path job = systole.folder() / "job.yaml";
  std::filesystem::rename(job, systole.folder() / "my job.yaml");
  EXPECT_TRUE(has(systole.run({"explain", "scaling", "my job.yaml"}).out, "`systole plan 'my job.yaml' --on any`"));
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

TEST(OddPlaces, a_uri_of_a_folder_is_that_folder) {
  const SystoleRunner systole;
  const std::filesystem::path there = systole.folder() / "elsewhere/c";
  const std::string uri = "file://" + there.string();
  systole.write("job.yaml", std::string(kWorkload) + "checkpoint: { folder: \"" + uri + "\" }\n");
  EXPECT_EQ(systole.run({"check", "job.yaml", "--backend", "reference"}).exit.code, 0);
  EXPECT_EQ(systole.run({"plan", "job.yaml", "--backend", "reference"}).exit.code, 0);
  EXPECT_FALSE(std::filesystem::exists(there)) << "nothing ran yet";
  const Captured done = systole.run({"run", "job.yaml", "--backend", "reference"});
  ASSERT_EQ(done.exit.code, 0) << done.err;
  EXPECT_TRUE(std::filesystem::exists(there / "manifests/000000000004.json"));
  EXPECT_FALSE(std::filesystem::exists(systole.folder() / "runs/small-1/file:"));
  const Captured more =
      systole.run({"resume", "small-1", "--backend", "reference", "--set", "train.steps=6", "--ranks", "2"});
  ASSERT_EQ(more.exit.code, 0) << more.err;
  EXPECT_TRUE(std::filesystem::exists(there / "manifests/000000000006.json"));
  const Captured of_run = systole.run({"ckpt", "list", "small-1"}), of_uri = systole.run({"ckpt", "list", uri});
  EXPECT_TRUE(has(of_run.out, "\n6 ") || has(of_run.out, "   6 ")) << of_run.out << of_run.err;
  EXPECT_EQ(of_uri.out, of_run.out) << of_uri.err;
  EXPECT_EQ(systole.run({"ckpt", "verify", "small-1"}).exit.code, 0);
  EXPECT_EQ(systole.run({"ckpt", "diff", "small-1@4", uri + "@4"}).exit.code, 0);
  const Captured second = systole.run({"run", "job.yaml", "--backend", "reference"});
  EXPECT_EQ(second.exit.code, 1) << second.err;
  EXPECT_TRUE(has(second.err, "'" + there.string() + "' holds the checkpoints of another run")) << second.err;
  const Captured from =
      systole.run({"run", "job.yaml", "--backend", "reference", "--folder", "b", "--set",
                   "checkpoint.folder=checkpoints", "--set", "resume.from=" + uri + "@4", "--set", "train.steps=8"});
  EXPECT_EQ(from.exit.code, 0) << from.err;
  EXPECT_TRUE(has(from.err, "begins from '" + there.string() + "@4'")) << from.err;
}

// Every command that reads the workload says so, before anything of a run is written.
TEST(OddPlaces, a_store_that_is_not_there_is_refused_at_its_place) {
  const SystoleRunner systole;
  for (const auto& [folder, code, why] : std::vector<std::tuple<std::string, int, std::string>>{
           {"ftp://host/a", 3, "there is no store for ftp://"},
           {"file://bucket/a", 2, "'file://bucket/a' names no folder of this machine"},
           {"memory:", 2, "'memory:' ends with the process, and no other could go on from checkpoints there"}}) {
    systole.write("job.yaml", std::string(kWorkload) + "checkpoint: { folder: \"" + folder + "\" }\n");
    for (const char* command : {"check", "plan", "run"}) {
      const Captured refused = systole.run({command, "job.yaml", "--backend", "reference"});
      EXPECT_EQ(refused.exit.code, code) << command << refused.err;
      EXPECT_TRUE(has(refused.err, "job.yaml:9:23: error: checkpoint.folder: " + why + "\n")) << refused.err;
      EXPECT_TRUE(has(refused.err, "file:///path")) << refused.err;
    }
  }
  systole.write("job.yaml", std::string(kWorkload) + "checkpoint: { folder: \"s3://a bucket\" }\n");
  const Captured bucket = systole.run({"check", "job.yaml", "--backend", "reference"});
  EXPECT_EQ(bucket.exit.code, 2);
  EXPECT_TRUE(has(bucket.err, "checkpoint.folder: 'a bucket' is no name of a bucket\n")) << bucket.err;
  EXPECT_TRUE(has(bucket.err, "hint: s3://BUCKET/FOLDER")) << bucket.err;
  EXPECT_FALSE(std::filesystem::exists(systole.folder() / "runs"));
  const Captured listed = systole.run({"ckpt", "list", "ftp://host/a"});
  EXPECT_EQ(listed.exit.code, 3) << listed.err;
  EXPECT_TRUE(has(listed.err, "there is no store for ftp://")) << listed.err;
  systole.write("job.yaml", kWorkload);
  ASSERT_EQ(systole.run({"run", "job.yaml", "--backend", "reference"}).exit.code, 0);
  const Captured moved = systole.run(
      {"resume", "small-1", "--backend", "reference", "--set", "train.steps=6", "--set", "checkpoint.folder=ftp://b"});
  EXPECT_EQ(moved.exit.code, 3) << moved.err;
  EXPECT_TRUE(has(moved.err, "checkpoint.folder: there is no store for ftp://")) << moved.err;
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

// A step follows the '@' in a name; in a folder above the run's, '@' is an ordinary character.
TEST(OddPlaces, an_at_sign_is_of_a_checkpoint_or_of_a_folder_above) {
  const SystoleRunner systole;
  systole.write("job.yaml", kWorkload);
  const Captured refused = systole.run({"run", "job.yaml", "--backend", "reference", "--folder", "runs/small@2"});
  EXPECT_EQ(refused.exit.code, 2) << refused.err;
  EXPECT_TRUE(has(refused.err, "hint: --folder runs/small-2\n")) << refused.err;
  const Captured dot = systole.run({"run", "job.yaml", "--backend", "reference", "--folder", "small@2/."});
  EXPECT_EQ(dot.exit.code, 2) << dot.err;
  EXPECT_TRUE(has(dot.err, "hint: --folder small-2\n")) << dot.err;
  std::filesystem::create_directory(systole.folder() / "at@home");
  const Captured here = systole.run_in(systole.folder() / "at@home", {"run", "../job.yaml", "--folder", "."});
  EXPECT_EQ(here.exit.code, 2) << here.err;
  EXPECT_TRUE(has(here.err, "--folder: 'at@home' cannot name a run: it has an '@'")) << here.err;
  EXPECT_TRUE(has(here.err, "/at-home\n")) << here.err;
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

// Makes a path inaccessible for this user during its lifetime.
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
    const char* key;  // that the error is reported at
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
    EXPECT_TRUE(has(got.err, "hint: let this user read it: chmod u+rX '")) << one.closed << ": " << got.err;
    EXPECT_TRUE(has(got.err, std::string(one.closed) + "'")) << one.closed << ": " << got.err;
    EXPECT_FALSE(has(got.err, "'//")) << one.closed << ": " << got.err;
  }
}

// The hint names the path that refuses access, not the requested path below it, and no missing path.
TEST(OddPlaces, the_hint_of_a_permission_helps) {
  const SystoleRunner systole;
  systole.write("closed/job.yaml", kWorkload);
  systole.write("job.yaml", kWorkload);
  {
    const Closed closed(systole.folder() / "closed");
    const Captured read = systole.run_as_user({"check", "closed/job.yaml"});
    EXPECT_TRUE(has(read.err,
                    "cannot read 'closed/job.yaml': Permission denied\n"
                    "  hint: let this user read it: chmod u+rX 'closed'\n"))
        << read.err;
    const Captured written = systole.run_as_user({"plan", "job.yaml", "--out", "closed/plan.json"});
    EXPECT_TRUE(has(written.err, "or give permission: chmod u+rwX 'closed'\n")) << written.err;
  }
  if (::geteuid() != 0) return;  // only root can change a file's owner
  ASSERT_EQ(::chown((systole.folder() / "closed").c_str(), 54321, 54321), 0);
  std::filesystem::permissions(systole.folder() / "closed", std::filesystem::perms::owner_all);
  const Captured others = systole.run_as_user({"check", "closed/job.yaml"});
  EXPECT_TRUE(has(others.err, "hint: 'closed' refuses: ask its owner (54321) for it\n")) << others.err;
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

// The index is derived: runs are listed without it.
TEST(OddPlaces, runs_are_listed_where_their_index_cannot_be_written) {
  using std::filesystem::perms;
  const SystoleRunner systole;
  systole.write("job.yaml", kWorkload);
  ASSERT_EQ(systole.run({"run", "job.yaml", "--backend", "reference"}).exit.code, 0);
  const std::filesystem::path runs = systole.folder() / "runs";
  std::filesystem::permissions(runs, perms::owner_read | perms::owner_exec);
  const Captured closed = systole.run_as_user({"runs"});
  std::filesystem::permissions(runs, perms::owner_all);
  EXPECT_EQ(closed.exit.code, 0) << closed.err;
  EXPECT_TRUE(has(closed.out, "small-1  finished")) << closed.out;
  EXPECT_TRUE(has(closed.err,
                  "runs/index.sqlite: warning: the index of runs: unable to open database file; the runs "
                  "are read without it\n"
                  "  hint: choose a folder that this user may write, or give permission: chmod u+rwX "
                  "'runs'\n"))
      << closed.err;
  if (systole.shell("mkdir small; unshare -m mount -t tmpfs -o size=1m small small").exit.code != 0)
    GTEST_SKIP() << "no small disk here";
  const Captured full = systole.shell(
      "unshare -m sh -c \"mount -t tmpfs -o size=1m small small && cp -r runs small && cd small && "
      "{ dd if=/dev/zero of=fill bs=4k 2>/dev/null; '$SYSTOLE' runs; }\"");
  EXPECT_EQ(full.exit.code, 0) << full.err;
  EXPECT_TRUE(has(full.out, "small-1  finished")) << full.out;
  EXPECT_TRUE(has(full.err, "database or disk is full; the runs are read without it\n  hint: free space on this disk"))
      << full.err;
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
    const std::string document = systole.run_as_user({"--json", "runs"}).out;
    const std::size_t refused = document.find("\"refused\": [\n    {\n      \"kind\": \"io\"");
    ASSERT_NE(refused, std::string::npos) << document;
    for (const char* closed : {"'runs/small-2", "'runs/small-3/plan.json'"})
      EXPECT_NE(document.find(closed, refused), std::string::npos) << closed << ": " << document;
    EXPECT_EQ(systole.run_as_user({"logs", "small-1"}).exit.code, 0);
    EXPECT_TRUE(has(systole.run_as_user({"logs", "small-2"}).err, ": Permission denied"));
  }
  EXPECT_TRUE(has(systole.run({"--json", "runs"}).out, "\"refused\": []\n"));
  EXPECT_TRUE(has(systole.run({"runs"}).out, "small-2  finished")) << "what was passed over is read once it may be";
}

}  // namespace
}  // namespace systole::cli
