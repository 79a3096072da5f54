// Exact output of failures: exit code, stdout, stderr.

#include <gtest/gtest.h>

#include "ground/base/document.h"
#include "operate/cli/testing/run_systole.h"
#include "operate/cli/testing/small_workload.h"

namespace systole::cli {
namespace {

struct Snapshot {
  int exit;
  std::string out, err;
};

void expect(const Captured& got, const Snapshot& want) {
  EXPECT_EQ(got.exit.code, want.exit) << got.err;
  EXPECT_EQ(got.exit.signal, 0);
  EXPECT_EQ(got.out, want.out);
  EXPECT_EQ(got.err, want.err);
}

TEST(Snapshots, a_command_that_is_not_there) {
  expect(SystoleRunner().run({"chek"}),
         {2, "", "error: unknown command 'systole chek'\n  hint: did you mean 'check'?\n"});
  expect(SystoleRunner().run({"ckpt", "lst"}),
         {2, "", "error: unknown command 'systole ckpt lst'\n  hint: did you mean 'list'?\n"});
}

TEST(Snapshots, an_option_that_is_not_there) {
  expect(SystoleRunner().run({"plan", "x.yaml", "--memroy", "2GiB"}),
         {2, "", "error: unknown option '--memroy' of 'systole plan'\n  hint: did you mean '--memory'?\n"});
}

// Common options are listed once.
TEST(Snapshots, an_option_that_is_like_no_other) {
  expect(SystoleRunner().run({"catalog", "slices", "--vendor", "x"}),
         {2, "",
          "error: unknown option '--vendor' of 'systole catalog slices'\n  hint: valid: --help, --accelerator, "
          "--max-chips, --version, --json, --quiet\n"});
}

TEST(Snapshots, an_argument_that_is_missing) {
  expect(SystoleRunner().run({"plan"}),
         {2, "", "error: systole plan: workload is required\n  hint: `systole plan --help` lists what it takes\n"});
}

TEST(Snapshots, a_workload_that_is_not_there) {
  const SystoleRunner systole;
  const std::string message =
      "error: there is no workload file 'nope.yaml'\n  hint: examples/quickstart.yaml is one to begin with\n";
  for (const char* command : {"check", "plan", "run"}) expect(systole.run({command, "nope.yaml"}), {2, "", message});
}

TEST(Snapshots, a_misspelt_key_with_the_nearest_name) {
  const SystoleRunner systole;
  systole.write("job.yaml", replaced(kWorkload, "batch: 8", "bacth: 8"));
  expect(systole.run({"check", "job.yaml"}), {2, "", R"(job.yaml:6:3: error: unknown key 'bacth' under train
  6 |   bacth: 8
    |   ^^^^^
  hint: did you mean 'batch'?
)"});
  systole.write("job.yaml", replaced(kWorkload, "model:", "modle:"));
  expect(systole.run({"check", "job.yaml"}), {2, "", R"(job.yaml:3:1: error: unknown key 'modle'
  3 | modle: { family: mlp, inputs: 4, outputs: 2 }
    | ^^^^^
  hint: did you mean 'model'?
)"});
}

constexpr const char* kTextWorkload = R"(systole: 1
name: text
model: { family: gpt, layers: 1, width: 16, heads: 2, context: 32 }
data:
  train: { files: [some.txt, "/nowhere at all/*.txt"] }
  held_out: { files: /nowhere.txt }
  tokenizer: { vocabulary: 300 }
train: { batch: 2, steps: 2, optimizer: { rate: 1e-3 } }
)";

TEST(Snapshots, files_of_text_that_are_missing_are_named_in_full_at_their_place) {
  const SystoleRunner systole;
  systole.write("job.yaml", kTextWorkload);
  const std::string some = (std::filesystem::canonical(systole.folder()) / "some.txt").string();
  const std::string places = R"(job.yaml:5:20: error: data.train.files: no file ')" + some + R"('
  5 |   train: { files: [some.txt, "/nowhere at all/*.txt"] }
    |                    ^^^^^^^^
  hint: check the name; 'some.txt' is looked for in the folder the command runs in
job.yaml:5:30: error: data.train.files: no file matches '/nowhere at all/*.txt'
  5 |   train: { files: [some.txt, "/nowhere at all/*.txt"] }
    |                              ^^^^^^^^^^^^^^^^^^^^^^^
  hint: check the name, or make the file first
job.yaml:6:22: error: data.held_out.files: no file '/nowhere.txt'
  6 |   held_out: { files: /nowhere.txt }
    |                      ^^^^^^^^^^^^
  hint: check the name, or make the file first
)";
  expect(systole.run({"check", "job.yaml", "--backend", "reference"}), {2, "", places + "3 errors\n"});
  expect(systole.run({"run", "job.yaml", "--backend", "reference"}), {2, "", places + "3 errors\n"});
  const Captured planned = systole.run({"plan", "job.yaml", "--backend", "reference"});
  EXPECT_EQ(planned.exit.code, 0) << "a plan needs no text";
  EXPECT_NE(planned.err.find("job.yaml:6:22: warning: data.held_out.files: no file '/nowhere.txt'"), std::string::npos)
      << planned.err;
  EXPECT_NE(planned.err.find("the plan goes on without the text"), std::string::npos) << planned.err;
  EXPECT_EQ(planned.out.find("0.00 ns"), std::string::npos) << planned.out;
}

TEST(Snapshots, the_next_command_repeats_the_options) {
  const SystoleRunner systole;
  systole.write("a job.yaml", std::string(kWorkload) + "environments: { long: { train: { steps: 6 } } }\n");
  const std::string words = "'a job.yaml' --env long --set train.batch=4 --memory 2GiB --backend reference\n";
  const std::vector<std::string> options{"a job.yaml", "--env", "long",      "--set",    "train.batch=4",
                                         "--memory",   "2GiB",  "--backend", "reference"};
  const auto with = [&](const char* command) {
    std::vector<std::string> all{command};
    all.insert(all.end(), options.begin(), options.end());
    return systole.run(all);
  };
  EXPECT_TRUE(with("check").err.ends_with("next: systole plan " + words)) << with("check").err;
  EXPECT_TRUE(with("plan").err.ends_with("next: systole run " + words)) << with("plan").err;
}

// Before a run begins, and without a run.
TEST(Snapshots, a_batch_that_leaves_rows_empty) {
  const SystoleRunner systole;
  systole.write("job.yaml", replaced(kWorkload, "batch: 8", "batch: 6\n  exact: true"));
  const std::string line =
      "warning: train.logical_shards: 6 rows in 8 logical shards of 1: 2 of 8 rows computed are empty, 25% of a step\n"
      "  hint: train.batch: 8, or train.logical_shards: 2, for at most as many workers\n";
  for (const char* command : {"plan", "run"}) {
    const Captured got = systole.run({command, "job.yaml", "--backend", "reference"});
    EXPECT_EQ(got.exit.code, 0) << command << got.err;
    EXPECT_NE(got.err.find(line), std::string::npos) << command << got.err;
    const Captured whole = systole.run({command, "job.yaml", "--backend", "reference", "--set", "train.batch=8"});
    EXPECT_EQ(whole.err.find("rows computed"), std::string::npos) << command << whole.err;
  }
}

TEST(Snapshots, a_folder_is_no_workload) {
  const SystoleRunner systole;
  expect(systole.run({"plan", "."}), {2, "",
                                      "error: '.' is a folder, not a workload file\n"
                                      "  hint: name the YAML file: examples/quickstart.yaml is one to begin with\n"});
}

TEST(Snapshots, what_is_no_workload_document) {
  const SystoleRunner systole;
  systole.write("empty.yaml", "");
  systole.write("list.yaml", "- a\n- b\n");
  systole.write("binary.yaml", std::string("\x7f"
                                           "ELF\0\xff",
                                           6));
  const std::string hint =
      "  hint: the keys are in `systole explain keys`; examples/quickstart.yaml is a workload to begin with\n";
  expect(
      systole.run({"check", "empty.yaml"}),
      {2, "", "empty.yaml:1:1: error: expected a workload: a map that begins with systole: 1, found nothing\n" + hint});
  expect(systole.run({"check", "list.yaml"}),
         {2, "",
          "list.yaml:1:1: error: expected a workload: a map that begins with systole: 1, found a list\n"
          "  1 | - a\n    | ^^^\n" +
              hint});
  const Captured binary = systole.run({"check", "binary.yaml"});
  EXPECT_EQ(binary.exit.code, 2);
  EXPECT_TRUE(binary.err.starts_with("binary.yaml:1:")) << binary.err;
}

TEST(Snapshots, sizes_out_of_range) {
  const SystoleRunner systole;
  systole.write("job.yaml", kTextWorkload);
  const struct {
    const char* set;
    std::string says;
  } cases[] = {
      {"train.batch=99999999999", "train.batch: 99999999999 is too high\n  hint: 1 to 1,000,000,000\n"},
      {"train.batch=-1", "train.batch: -1 is too low\n  hint: 1 to 1,000,000,000\n"},
      {"model.layers=0", "model.layers: 0 is too low\n  hint: 1 to 10,000\n"},
      {"model.heads=3", "3 heads do not divide width 16\n  hint: heads may be 1, 2, 4, 8 or 16, or say model.head\n"},
      {"model.vocabulary=100",
       "vocabulary 100 is smaller than the tokenizer's 300\n  hint: model.vocabulary: 300 or more, or leave it out\n"},
      {"train.stps=1", "unknown key 'stps' under train\n  hint: did you mean 'steps'?\n"},
  };
  for (const auto& c : cases) {
    expect(systole.run({"check", "job.yaml", "--set", c.set}),
           {2, "", fmt::format("--set {}: error: {}", c.set, c.says)});
  }
  expect(systole.run({"plan", "job.yaml", "--memory", "2GX"}),
         {2, "",
          "error: --memory: '2GX' is not a number of bytes: unit 'GX' is not known\n"
          "  hint: units: B, kB, KB, MB, GB, TB, PB, KiB, MiB, GiB, TiB, PiB\n"});
}

TEST(Snapshots, master_weights_below_f32) {
  const SystoleRunner systole;
  systole.write("job.yaml", kWorkload);
  expect(systole.run({"check", "job.yaml", "--set", "train.precision.parameter=bf16"}),
         {3, "",
          "--set train.precision.parameter=bf16: error: train.precision.parameter: bf16 is not done: small updates and "
          "long sums would be lost in it\n"
          "  hint: f32, or f64 with --backend reference; train.precision.compute may be bf16\n"});
  EXPECT_EQ(systole.run({"check", "job.yaml", "--set", "train.precision=f64", "--backend", "reference"}).exit.code, 0);
}

TEST(Snapshots, texts_that_are_none) {
  const SystoleRunner systole;
  systole.write("job.yaml", replaced(replaced(kTextWorkload, "[some.txt, \"/nowhere at all/*.txt\"]", "some.txt"),
                                     "files: /nowhere.txt", "fraction: 10%"));
  systole.write("some.txt", "");
  const std::string file = (std::filesystem::canonical(systole.folder()) / "some.txt").string();
  const auto plan = [&] { return systole.run({"plan", "job.yaml", "--backend", "reference"}); };
  expect(plan(), {2, "",
                  file + ": error: the file is empty\n  hint: it was perhaps not written to its end: make it again, or "
                         "leave it out of `files`\n"});
  systole.write("some.txt", std::string("a\0b", 3));
  expect(plan(), {2, "",
                  file + ": error: this is binary data, not text: byte 1 is NUL\n  hint: name a text file, or take the "
                         "bytes as they are with `invalid_utf8: bytes`\n"});
  systole.write("some.txt", "one\ntwo\n");
  const Captured few = plan();
  EXPECT_EQ(few.exit.code, 2);
  EXPECT_TRUE(few.err.starts_with("job.yaml: error: no document was set aside: 2 documents")) << few.err;
}

TEST(Snapshots, files_that_are_not_what_they_should_be) {
  const SystoleRunner systole;
  systole.write("job.yaml", replaced(replaced(kTextWorkload, "[some.txt, \"/nowhere at all/*.txt\"]", "texts"),
                                     "files: /nowhere.txt", "fraction: 10%"));
  std::filesystem::create_directory(systole.folder() / "texts");
  const std::string folder = std::filesystem::canonical(systole.folder()).string();
  expect(systole.run({"check", "job.yaml"}),
         {2, "",
          "job.yaml:5:19: error: data.train.files: '" + folder +
              "/texts' is a folder\n  5 |   train: { files: texts }\n    |                   ^^^^^\n"
              "  hint: name its files: texts/*.txt\n"});
  systole.write("job.yaml", replaced(replaced(kTextWorkload, "[some.txt, \"/nowhere at all/*.txt\"]", "some.txt"),
                                     "vocabulary: 300", "file: some.txt"));
  systole.write("some.txt", "a\nb\n");
  const Captured got =
      systole.run({"check", "job.yaml", "--set", "data.held_out.files=some.txt", "--set", "model.vocabulary=300"});
  EXPECT_EQ(got.exit.code, 1);
  EXPECT_TRUE(got.err.starts_with("job.yaml:7:22: error: data.tokenizer.file: '" + folder +
                                  "/some.txt': this is neither a SentencePiece model nor a tokenizer.json\n"))
      << got.err;
}

// Sizes beyond any machine are refused at once, not after minutes of preparation.
TEST(Snapshots, absurd_sizes) {
  const SystoleRunner systole;
  systole.write("job.yaml", replaced(replaced(kTextWorkload, "[some.txt, \"/nowhere at all/*.txt\"]", "some.txt"),
                                     "files: /nowhere.txt", "fraction: 10%"));
  std::string text;
  for (int i = 0; i < 300; ++i) text += fmt::format("word {} of a list, in its {}th line\n", i * 7 % 50, i);
  systole.write("some.txt", text);
  const Captured large = systole.run({"plan", "job.yaml", "--set", "train.batch=500000000"});
  EXPECT_EQ(large.exit.code, 1) << large.err;
  EXPECT_NE(large.err.find("error: does not fit: needs "), std::string::npos) << large.err;
  const Captured larger =
      systole.run({"check", "job.yaml", "--set", "train.batch=1000000000", "--set", "model.context=100000000"});
  EXPECT_EQ(larger.exit.code, 2) << larger.err;
  EXPECT_NE(larger.err.find("more than 2^62 elements"), std::string::npos) << larger.err;
  EXPECT_NE(larger.err.find("hint: sizes under model"), std::string::npos) << larger.err;
}

TEST(Snapshots, options_out_of_range) {
  const SystoleRunner systole;
  expect(systole.run({"generate", "--tokens", "0"}), {2, "",
                                                      "error: systole generate: --tokens: 0 is too low: 1 or more\n"
                                                      "  hint: `systole generate --help` lists what it takes\n"});
  expect(systole.run({"logs", "--kind", "step_endde"}),
         {2, "", "error: --kind: 'step_endde' is no kind of event\n  hint: did you mean 'step_ended'?\n"});
  expect(systole.run({"runs", "nowhere"}),
         {2, "",
          "error: 'nowhere' is no folder of runs\n"
          "  hint: without a name it is 'runs', in the folder the command runs in\n"});
  expect(systole.run({"why", "job.yaml"}),
         {2, "",
          "error: there is no run 'job.yaml': neither a run's folder nor a run in 'runs'\n"
          "  hint: it looks like a workload: systole run job.yaml begins a run\n"});
}

TEST(Snapshots, groups_name_their_commands) {
  expect(SystoleRunner().run({"data"}),
         {2, "",
          "error: 'systole data' is no command by itself\n"
          "  hint: systole data and one of: build, show, pack, cat, bigquery, push, stage, sync, ls, probe, lengths, "
          "verify\n"});
}

TEST(Snapshots, help_begins_with_the_whole_command) {
  const SystoleRunner systole;
  EXPECT_NE(systole.run({"help", "plan"}).out.find("Usage: systole plan [OPTIONS] workload"), std::string::npos);
  EXPECT_EQ(systole.run({"help", "ckpt", "diff"}).out, systole.run({"ckpt", "diff", "--help"}).out);
  EXPECT_NE(systole.run({"help", "plam"}).err.find("did you mean 'plan'?"), std::string::npos);
}

TEST(Snapshots, a_dry_run_prints_its_plan_as_json) {
  const SystoleRunner systole;
  systole.write("job.yaml", kWorkload);
  const Captured dry =
      systole.run({"run", "job.yaml", "--backend", "reference", "--folder", "r", "--dry-run", "--json"});
  ASSERT_EQ(dry.exit.code, 0) << dry.err;
  const Node document = parse_json(dry.out, "stdout").value();
  EXPECT_NE(document.find("workload"), nullptr) << dry.out;
  EXPECT_FALSE(std::filesystem::exists(systole.folder() / "r"));
}

TEST(Snapshots, a_wrong_unit) {
  const SystoleRunner systole;
  systole.write("job.yaml", std::string(kWorkload) + "resources: { memory: 2GX }\n");
  const Captured got = systole.run({"check", "job.yaml"});
  EXPECT_EQ(got.exit.code, 2);
  EXPECT_EQ(got.out, "");
  EXPECT_TRUE(got.err.starts_with("job.yaml:9:22: error: ")) << got.err;
  EXPECT_NE(got.err.find("GiB"), got.err.npos) << got.err;
}

TEST(Snapshots, all_errors_at_once) {
  const SystoleRunner systole;
  systole.write("job.yaml", replaced(replaced(kWorkload, "steps: 4", "steps: -4"), "outputs: 2", "outputs: two"));
  const Captured got = systole.run({"check", "job.yaml"});
  EXPECT_EQ(got.exit.code, 2);
  EXPECT_TRUE(got.err.ends_with("2 errors\n")) << got.err;
}

TEST(Snapshots, the_error_as_json) {
  expect(SystoleRunner().run({"check", "nope.yaml", "--json"}),
         {2, R"({
  "systole": "check",
  "version": 1,
  "error": {
    "kind": "not_found",
    "message": "there is no workload file 'nope.yaml'",
    "hint": "examples/quickstart.yaml is one to begin with"
  }
}
)",
          "error: there is no workload file 'nope.yaml'\n  hint: examples/quickstart.yaml is one to begin with\n"});
}

TEST(Snapshots, no_run_yet) {
  const SystoleRunner systole;
  expect(systole.run({"why"}),
         {2, "", "error: there is no run in 'runs'\n  hint: systole run WORKLOAD, or name the folder of a run\n"});
  expect(systole.run({"runs"}), {0, "", "no runs yet: there is no folder 'runs'\n"});
  expect(systole.run({"runs", "--quiet"}), {0, "", ""});
}

TEST(Snapshots, version_and_help) {
  const SystoleRunner systole;
  expect(systole.run({"--version"}), {0, "systole 0.1.0\n", ""});
  for (const char* word : {"version", "versions", "Version"})
    expect(systole.run({word}), {2, "",
                                 fmt::format("error: unknown command 'systole {}'\n"
                                             "  hint: did you mean 'systole --version'?\n",
                                             word)});
  for (const char* word : {"-V", "-v"})
    expect(systole.run({word}), {2, "",
                                 fmt::format("error: unknown option '{}' of 'systole'\n"
                                             "  hint: did you mean '--version'?\n",
                                             word)});
  const Captured submit = systole.run({"submit", "--help"});
  EXPECT_NE(submit.out.find("where: slurm, kubernetes, ssh; without: what --plan is for\n"), std::string::npos)
      << submit.out;
  for (const char* of_render : {"gke", "gcloud", "docker", "--base", "--accelerator"})
    EXPECT_EQ(submit.out.find(of_render), std::string::npos) << of_render;
  const Captured codes = systole.run({"help", "exit-codes"});
  EXPECT_EQ(codes.exit.code, 0);
  for (const char* code : {"    0  ", "    1  ", "    2  ", "    3  ", "   75  ", "   76  ", "  130  "}) {
    EXPECT_NE(codes.out.find(code), codes.out.npos) << code;
  }
  EXPECT_NE(systole.run({"ckpt", "diff", "--help"}).out.find("systole ckpt diff [OPTIONS] run other"),
            std::string::npos);
}

}  // namespace
}  // namespace systole::cli
