// What people see when something is wrong, to the letter: exit code, stdout, stderr.

#include <gtest/gtest.h>

#include "operate/cli/run_systole.h"

namespace systole::cli {
namespace {

constexpr const char* kWorkload = R"(systole: 1
name: small
model: { family: mlp, inputs: 4, outputs: 2 }
data: { kind: linear, rows: 64, held_out_rows: 16 }
train:
  batch: 8
  steps: 4
  optimizer: { kind: sgd, rate: 0.1 }
)";

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

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  const std::size_t at = text.find(what);
  CHECK(at != text.npos, "'{}' is not there", what);
  return text.replace(at, what.size(), with);
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
  expect(systole.run({"check", "job.yaml"}), {2, "", R"(job.yaml:5:1: error: missing key 'train.batch'
  5 | train:
    | ^^^^^
  hint: add batch: count, 1 to 1,000,000,000 (Rows a step.)
job.yaml:6:3: error: unknown key 'bacth' under train
  6 |   bacth: 8
    |   ^^^^^
  hint: did you mean 'batch'?
2 errors
)"});
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

TEST(Snapshots, what_does_not_fit_is_refused_before_anything_starts) {
  const SystoleRunner systole;
  systole.write("job.yaml", kWorkload);
  const Captured got = systole.run({"run", "job.yaml", "--backend", "reference", "--memory", "1MiB", "--folder", "r"});
  EXPECT_EQ(got.exit.code, 1);
  EXPECT_NE(got.err.find("error: does not fit"), got.err.npos) << got.err;
  EXPECT_FALSE(std::filesystem::exists(systole.folder() / "r" / "checkpoints" / "manifests"));
}

TEST(Snapshots, version_and_help) {
  const SystoleRunner systole;
  expect(systole.run({"--version"}), {0, "systole 0.1.0\n", ""});
  const Captured codes = systole.run({"help", "exit-codes"});
  EXPECT_EQ(codes.exit.code, 0);
  for (const char* code : {"    0  ", "    1  ", "    2  ", "    3  ", "   75  ", "   76  ", "  130  "}) {
    EXPECT_NE(codes.out.find(code), codes.out.npos) << code;
  }
  EXPECT_NE(systole.run({"ckpt", "diff", "--help"}).out.find("systole ckpt diff [OPTIONS] run other"),
            std::string::npos);
}

// No colour, no carriage return when nobody looks: neither stream is a terminal here.
TEST(Snapshots, plain_where_there_is_no_terminal) {
  const SystoleRunner systole;
  systole.write("job.yaml", kWorkload);
  const Captured got = systole.run({"run", "job.yaml", "--backend", "reference", "--folder", "r"});
  ASSERT_EQ(got.exit.code, 0) << got.err;
  EXPECT_EQ((got.out + got.err).find_first_of("\r\x1b"), std::string::npos);
}

}  // namespace
}  // namespace systole::cli
