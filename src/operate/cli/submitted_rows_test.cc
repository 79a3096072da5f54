// `systole runs` of submitted runs: finished runs are not queried again, all others are current.

#include <gtest/gtest.h>

#include <ctime>
#include <map>

#include "describe/spec/run.h"
#include "ground/base/document.h"
#include "ground/base/text_file.h"
#include "operate/cli/testing/run_systole.h"

namespace systole::cli {
namespace {

namespace fs = std::filesystem;

// A folder of runs, and a Slurm whose squeue prints the file squeue.out and counts its calls.
struct SubmittedRows : testing::Test {
  SubmittedRows() {
    systole_.write("bin/squeue",
                   "#!/bin/sh\necho asked >>\"$HOME/asked\"\ncat \"$HOME/squeue.out\" 2>/dev/null || true\n");
    fs::permissions(systole_.folder() / "bin/squeue", fs::perms(0755));
    record("over", 17);
    ledger("over", "began 17 0 1000 4\nended 17 0 4600 0\n");
  }
  std::string place(const std::string& run) const { return "runs/.submitted/" + run; }
  void record(const std::string& run, int id, const std::string& at = "2026-11-24T00:00:00.000Z") const {
    Node node = Node::map({{"run", run}, {"target", "slurm"}, {"submission", fmt::format("{:016x}", id)}});
    node.set("id", std::to_string(id)).set("from", systole_.folder().string());
    node.set("place", (systole_.folder() / place(run)).string()).set("folder", "runs/" + run).set("submitted_at", at);
    for (const char* text : {"program", "by", "workload_sha256", "plan_sha256", "program_sha256", "audit"})
      node.set(text, "x");
    node.set("usd_per_hour", 12.5).set("array", false).set("after", Node::sequence());
    systole_.write(place(run) + "/record.json", to_json(node.set("earlier", Node::sequence()), 2));
  }
  void ledger(const std::string& run, const std::string& text) const { systole_.write(place(run) + "/ledger", text); }
  // Jobs as squeue prints them; defaults are those of a running job.
  void squeue(const std::string& run, int id, const std::string& state, std::int64_t ended_at) const {
    const std::string line = fmt::format("{}|{}|None|0|systole/run={}/{:016x}|900|{}|n[0-3]|\n", id, state, run, id,
                                         ended_at == 0 ? "N/A" : std::to_string(ended_at));
    std::string text;
    for (const char c : line) text += c == '|' ? '\x1f' : c;
    systole_.write("squeue.out", text);
  }
  Captured runs(const std::string& words = "") const {
    fs::remove(systole_.folder() / "asked");
    Captured got = systole_.shell("PATH=\"$PWD/bin:$PATH\"; exec \"$SYSTOLE\" runs " + words);
    EXPECT_EQ(got.exit.code, 0) << got.err;
    return got;
  }
  bool asked() const { return fs::exists(systole_.folder() / "asked"); }
  std::string index() const { return (systole_.folder() / "runs/index.sqlite").string(); }

  SystoleRunner systole_;
};

TEST_F(SubmittedRows, one_that_is_over_is_asked_about_once_and_shown_the_same) {
  const Captured first = runs();
  EXPECT_TRUE(asked());
  EXPECT_NE(first.out.find("over       slurm 17  finished  2026-11-24T00:00:00  -       0        4.00    12.50"),
            first.out.npos)
      << first.out;
  const Captured second = runs();
  EXPECT_FALSE(asked());
  EXPECT_EQ(second.out, first.out);
  const std::string document = runs("--json").out;
  EXPECT_FALSE(asked());
  fs::remove(index());
  EXPECT_EQ(runs("--json").out, document);
  EXPECT_TRUE(asked());
  EXPECT_NE(document.find("\"ended_at\": 4600"), document.npos) << document;
}

TEST_F(SubmittedRows, one_that_goes_on_is_asked_about_each_time_among_those_that_are_over) {
  record("ran", 18, "2026-11-25T00:00:00.000Z");
  ledger("ran", "began 18 0 1000 4\n");
  squeue("ran", 18, "RUNNING", 0);
  for (int i = 0; i < 3; ++i) {
    const std::string out = runs().out;
    EXPECT_TRUE(asked());
    EXPECT_NE(out.find("\nran        slurm 18  running"), out.npos) << out;
    EXPECT_LT(out.find("\nran "), out.find("\nover ")) << "newest first\n" << out;
  }
}

TEST_F(SubmittedRows, one_that_cannot_be_asked_is_as_it_was_seen_last_and_says_when) {
  record("on", 18, "2026-11-25T00:00:00.000Z");
  ledger("on", "began 18 0 1000 4\n");
  record("new", 19, "2026-11-26T00:00:00.000Z");
  const std::string down = "#!/bin/sh\necho 'Unable to contact slurm controller' >&2; exit 1\n";
  const std::string up = read_text_file((systole_.folder() / "bin/squeue").string()).value();
  squeue("on", 18, "RUNNING", 0);
  const std::string before = runs().out;
  EXPECT_EQ(before.find("seen (UTC)"), before.npos) << "all of it is of now\n" << before;
  record("later", 20, "2026-11-27T00:00:00.000Z");
  systole_.write("bin/squeue", down);
  for (int i = 0; i < 2; ++i) {
    const Captured got = runs();
    EXPECT_NE(got.err.find("warning: "), got.err.npos) << got.err;
    EXPECT_NE(got.out.find("\non         slurm 18  running   2026-11-25"), got.out.npos) << got.out;
    EXPECT_NE(got.out.find("\nlater      slurm 20  unknown   2026-11-27"), got.out.npos) << got.out;
    EXPECT_NE(got.out.find("never"), got.out.npos) << got.out;
    EXPECT_NE(got.out.find("seen (UTC)"), got.out.npos) << got.out;
  }
  const Node document = parse_json(runs("--json").out, "stdout").value();
  for (const Node& node : document.find("submitted")->items())
    EXPECT_EQ(node.find("seen_at")->is_null(),
              node.find("run")->text() == "later" || node.find("run")->text() == "over")
        << to_json(node);
  EXPECT_NE(runs("--rebuild").out.find("\non         slurm 18  running   2026-11-25"), std::string::npos);
  record("on", 21, "2026-11-28T00:00:00.000Z");
  EXPECT_NE(runs().out.find("\non         slurm 21  unknown   2026-11-28"), std::string::npos) << "another job";
  systole_.write("bin/squeue", up);
  squeue("on", 21, "PENDING", 0);
  EXPECT_NE(runs().out.find("\non         slurm 21  queued    2026-11-28"), std::string::npos) << runs().out;
}

TEST_F(SubmittedRows, one_that_was_sent_again_is_what_it_is_now) {
  runs();
  record("over", 19, "2026-11-25T00:00:00.000Z");
  squeue("over", 19, "PENDING", 0);
  for (int i = 0; i < 2; ++i) {
    EXPECT_NE(runs().out.find("over       slurm 19  queued  2026-11-25"), std::string::npos) << runs().out;
    EXPECT_TRUE(asked());
  }
}

TEST_F(SubmittedRows, one_whose_job_began_again_is_what_it_is_now) {
  runs();
  squeue("over", 17, "RUNNING", 0);
  std::ofstream(systole_.folder() / place("over") / "ledger", std::ios::app) << "began 17 1 5000 4\n";
  for (int i = 0; i < 2; ++i) {
    EXPECT_NE(runs().out.find("over       slurm 17  running"), std::string::npos) << runs().out;
    EXPECT_TRUE(asked());
  }
}

TEST_F(SubmittedRows, one_that_has_only_just_ended_is_asked_about_again) {
  squeue("over", 17, "COMPLETED", std::time(nullptr) - 5);
  runs();
  runs();
  EXPECT_TRUE(asked()) << "it may be put back into its queue";
  squeue("over", 17, "COMPLETED", std::time(nullptr) - 600);
  runs();
  runs();
  EXPECT_FALSE(asked());
}

TEST_F(SubmittedRows, one_that_told_of_no_end_lasted_until_its_target_says) {
  ledger("over", "began 17 0 1000 4\n");
  squeue("over", 17, "NODE_FAIL", 4600);
  const std::string first = runs().out;
  EXPECT_NE(first.find("failed"), first.npos) << first;
  EXPECT_NE(first.find("  4.00    12.50  NODE_FAIL"), first.npos) << first;
  fs::remove(systole_.folder() / "squeue.out");
  EXPECT_EQ(runs().out, first) << "Slurm has forgotten it";
  EXPECT_FALSE(asked());
  fs::remove(index());
  EXPECT_NE(runs().out.find("unknown"), std::string::npos) << runs().out;
  runs();
  EXPECT_TRUE(asked()) << "nobody knows that it is over";
}

TEST_F(SubmittedRows, an_index_that_is_none_is_made_anew) {
  const std::string out = runs().out;
  const auto is_made_anew = [&] {
    const Captured got = runs();
    EXPECT_EQ(got.out, out);
    EXPECT_TRUE(asked());
    EXPECT_NE(got.err.find("'runs/index.sqlite' is damaged and is made anew"), got.err.npos) << got.err;
    EXPECT_EQ(runs().out, out);
    EXPECT_FALSE(asked());
  };
  systole_.write("runs/index.sqlite", std::string(9000, 'x'));
  is_made_anew();
  {
    std::fstream file(index(), std::ios::in | std::ios::out);  // keeps its header and destroys the rest
    file.seekp(100);
    file << std::string(fs::file_size(index()) - 100, '\xff');
  }
  is_made_anew();
}

// One process writes at a time, and a killed one's transaction is rolled back.
TEST_F(SubmittedRows, many_at_once_and_killed_ones_leave_an_index_that_holds) {
  for (int id = 100; id < 400; ++id) {
    record(fmt::format("run-{}", id), id);
    ledger(fmt::format("run-{}", id), fmt::format("began {0} 0 1000 4\nended {0} 0 4600 0\n", id));
  }
  const Captured crowd = systole_.shell(
      "PATH=\"$PWD/bin:$PATH\"; for i in 1 2 3 4 5 6; do\n"
      "  \"$SYSTOLE\" --json runs >whole.$i 2>err.$i & whole=\"$whole $!\"\n"
      "  \"$SYSTOLE\" --json runs >/dev/null 2>&1 & victims=\"$victims $!\"\ndone\n"
      "for pid in $victims; do sleep 0.02; kill -9 $pid; done\n"
      "for pid in $whole; do wait $pid || exit 1; done; cat err.*");
  EXPECT_EQ(crowd.exit.code, 0) << crowd.err;
  EXPECT_EQ(crowd.out.find("warning"), crowd.out.npos) << crowd.out;
  const std::string document = runs("--json").out;
  EXPECT_FALSE(asked());
  for (int i = 1; i <= 6; ++i)
    EXPECT_EQ(read_text_file((systole_.folder() / fmt::format("whole.{}", i)).string()).value(), document);
}

TEST_F(SubmittedRows, a_list_changes_nothing_but_the_index) {
  for (const std::string name : {"sbatch", "scancel", "scontrol"}) {
    systole_.write("bin/" + name, "#!/bin/sh\necho " + name + " >>\"$HOME/changed\"\n");
    fs::permissions(systole_.folder() / "bin" / name, fs::perms(0755));
  }
  squeue("over", 17, "NODE_FAIL", 4600);
  ledger("over", "began 17 0 1000 4\n");
  Opened opened;
  opened.run = "here";
  systole_.write("runs/here-1/events/000.jsonl", to_json_line({Seconds(0), opened}));
  const auto files = [&] {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(systole_.folder() / "runs"))
      if (entry.is_regular_file() && !entry.path().filename().string().starts_with("index.sqlite"))
        all[entry.path().string()] = read_text_file(entry.path().string()).value();
    return all;
  };
  const auto before = files();
  for (const char* words : {"", "--json", "--rebuild"}) {
    EXPECT_NE(runs(words).out.find("killed"), std::string::npos) << "it recorded no end, and nobody holds its folder";
    EXPECT_EQ(files(), before) << words;
  }
  EXPECT_FALSE(fs::exists(systole_.folder() / "changed"));
}

TEST_F(SubmittedRows, rebuild_asks_about_all) {
  const std::string out = runs().out;
  EXPECT_EQ(runs("--rebuild").out, out);
  EXPECT_TRUE(asked());
  EXPECT_EQ(runs().out, out);
  EXPECT_FALSE(asked());
}

TEST_F(SubmittedRows, one_that_was_taken_away_is_gone_and_a_damaged_record_says_so) {
  record("other", 20);
  ledger("other", "began 20 0 1000 1\nended 20 0 1100 0\n");
  runs();
  fs::remove_all(systole_.folder() / place("over"));
  EXPECT_EQ(runs().out.find("over "), std::string::npos);
  EXPECT_FALSE(asked());
  systole_.write(place("other") + "/record.json", "{");
  record("third", 21);
  ledger("third", "began 21 0 1000 1\nended 21 0 1100 0\n");
  const Captured got = runs();
  EXPECT_NE(got.out.find("third "), got.out.npos) << "those with whole records are shown\n" << got.out;
  EXPECT_EQ(got.out.find("other "), got.out.npos) << got.out;
  EXPECT_NE(got.err.find("other/record.json: warning: this is no record of the run 'other'"), got.err.npos) << got.err;
}

}  // namespace
}  // namespace systole::cli
