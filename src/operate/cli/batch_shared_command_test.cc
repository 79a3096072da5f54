// `systole batch` of jobs that several processes compute, and of jobs with a schedule.

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <functional>
#include <thread>

#include "ground/base/document.h"
#include "ground/base/testing/files.h"
#include "ground/process/spawn.h"
#include "operate/cli/testing/run_systole.h"

namespace systole::cli {
namespace {

constexpr int kRows = 60;

class BatchShared : public testing::Test {
 protected:
  BatchShared() {
    std::filesystem::copy(SYSTOLE_SOURCE_DIR "/src/execute/weights/golden/gpt2", folder() / "model");
    write_rows(kRows);
    write_job("whole.yaml", "whole.jsonl", "");
  }

  const std::filesystem::path& folder() const { return systole_.folder(); }
  void write_rows(int count) const {
    std::string rows;
    for (int i = 0; i < count; ++i)
      rows += fmt::format("{{\"custom_id\": \"r{}\", \"text\": \"{} beings\"}}\n", i, std::string(i % 5 + 1, 'a'));
    systole_.write("rows.jsonl", rows);
  }
  // Labels: the answers have no moment in them.
  void write_job(const std::string& file, const std::string& output, const std::string& more) const {
    systole_.write(file, fmt::format("model: model\ninput: rows.jsonl\noutput: {}\nkind: classify\n"
                                     "prompt: \"All {{text}} are\"\nlabels: [born free, equal]\n{}",
                                     output, more));
  }
  Captured run(const std::string& job, std::vector<std::string> more = {}) const {
    std::vector<std::string> words{"batch", job, "--backend", "reference"};
    words.insert(words.end(), more.begin(), more.end());
    return systole_.run(words);
  }
  Process start(const std::string& job, const std::string& name, std::vector<std::string> more = {}) const {
    Command command;
    command.argv = {SYSTOLE_BINARY_DIR "/src/operate/cli/systole", "batch", job, "--backend", "reference", "--json"};
    command.argv.insert(command.argv.end(), more.begin(), more.end());
    command.cwd = folder().string();
    command.env = {{"NO_COLOR", "1"}, {"HOME", command.cwd}};
    command.out = ChildStream::file((folder() / (name + ".out")).string());
    command.err = ChildStream::file((folder() / (name + ".err")).string());
    return Process::start(command).value();
  }
  static bool comes_true(const std::function<bool()>& holds) {
    for (int i = 0; i < 6000 && !holds(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return holds();
  }
  std::string text(const std::string& name) const { return text_of(folder() / name); }
  bool exists(const std::string& name) const { return std::filesystem::exists(folder() / name); }
  // Of the journals of all shards.
  int rows_in_journals() const {
    int rows = 0;
    for (int i = 0; i < 16; ++i) {
      const std::string journal = text(fmt::format("out.jsonl.shards/out.{}-of-16.jsonl.journal/rows", i));
      for (std::size_t at = 0; (at = journal.find(" row ", at)) != journal.npos; ++at) ++rows;
    }
    return rows;
  }
  std::int64_t number(const std::string& json, const char* key) const {
    return parse_json(json, "stdout").value().find(key)->as_int().value();
  }

  SystoleRunner systole_;
};

TEST_F(BatchShared, grows_from_one_process_to_three_of_which_one_is_killed) {
  ASSERT_EQ(run("whole.yaml").exit.code, 0);
  write_job("job.yaml", "out.jsonl", "shards: auto\n");
  Process first = start("job.yaml", "first");
  ASSERT_TRUE(comes_true([&] { return rows_in_journals() > 0; })) << text("first.err");
  Process second = start("job.yaml", "second"), third = start("job.yaml", "third");
  ASSERT_TRUE(
      comes_true([&] { return text("second.err").find("16 shards") != std::string::npos || first.has_ended(); }));
  EXPECT_FALSE(first.has_ended()) << "the rows are too few to show anything";
  second.signal(SIGKILL).value();
  EXPECT_EQ(second.wait().signal, SIGKILL);
  EXPECT_EQ(first.wait().code, 0) << text("first.err");
  EXPECT_EQ(third.wait().code, 0) << text("third.err");
  EXPECT_EQ(text("out.jsonl"), text("whole.jsonl"));
  EXPECT_FALSE(exists("out.jsonl.shards")) << "what is joined goes";
  const std::string one = text("first.out"), other = text("third.out");
  EXPECT_EQ(number(one, "rows"), kRows);
  EXPECT_LE(number(one, "rows_here") + number(other, "rows_here"), kRows) << "no row twice";
  EXPECT_GT(number(one, "rows_here"), 0);
  EXPECT_GT(number(other, "rows_here"), 0) << text("third.err");

  const Captured again = run("job.yaml", {"--json"});
  EXPECT_EQ(again.exit.code, 0) << again.err;
  EXPECT_EQ(number(again.out, "rows_here"), 0);
}

TEST_F(BatchShared, is_stopped_priced_and_goes_on) {
  ASSERT_EQ(run("whole.yaml").exit.code, 0);
  write_job("job.yaml", "out.jsonl", "shards: 6\n");
  Process first = start("job.yaml", "first");
  const std::string journal = "out.jsonl.shards/out.1-of-6.jsonl.journal/rows";
  ASSERT_TRUE(comes_true([&] { return text(journal).find(" row ") != std::string::npos; })) << text("first.err");
  first.signal(SIGTERM).value();
  EXPECT_EQ(first.wait().code, 75) << text("first.err");
  EXPECT_NE(text("first.err").find("stopped with "), std::string::npos);
  const std::string rows = text(journal);
  const Captured priced = run("job.yaml", {"--dry-run", "--json"});
  ASSERT_EQ(priced.exit.code, 0) << priced.err;
  EXPECT_LT(number(priced.out, "rows_to_compute"), kRows - 10);
  EXPECT_EQ(text(journal), rows);

  const Captured by_hand = run("job.yaml", {"--shard", "0/2"});
  EXPECT_EQ(by_hand.exit.code, 2);
  EXPECT_NE(by_hand.err.find("shards: the processes of this job take shards in turn"), std::string::npos)
      << by_hand.err;
  const Captured ended = run("job.yaml");
  EXPECT_EQ(ended.exit.code, 0) << ended.err;
  EXPECT_EQ(text("out.jsonl"), text("whole.jsonl"));
}

TEST_F(BatchShared, tells_when_it_is_due) {
  write_job("job.yaml", "runs/out.jsonl", "schedule: { cron: 30 2 * * *, time_zone: Europe/Berlin }\n");
  const Captured told = run("job.yaml", {"--next", "3", "--at", "2026-03-28T00:00:00Z"});
  EXPECT_EQ(told.out,
            "2026-03-28T02-30+0100  2026-03-28T01:30:00Z\n"
            "2026-03-29T03-00+0200  2026-03-29T01:00:00Z\n"
            "2026-03-30T02-30+0200  2026-03-30T00:30:00Z\n")
      << told.err;
  const Captured none = run("whole.yaml", {"--due"});
  EXPECT_EQ(none.exit.code, 2);
  EXPECT_NE(none.err.find("whole.yaml: the job has no schedule\n  hint: schedule: { cron: "), std::string::npos)
      << none.err;
  write_job("job.yaml", "runs/out.jsonl", "schedule: 30 26 * * *\n");
  EXPECT_NE(run("job.yaml", {"--due"}).err.find("job.yaml:7:11: error: schedule: '26' as its hour"), std::string::npos);
}

TEST_F(BatchShared, runs_what_is_due_in_a_folder_of_its_own_and_goes_on_after_a_kill) {
  ASSERT_EQ(run("whole.yaml").exit.code, 0);
  write_job("job.yaml", "runs/out.jsonl", "schedule: { cron: 30 2 * * *, start_within: 2h }\n");
  const Captured early = run("job.yaml", {"--due", "--at", "2026-11-28T02:29:59Z"});
  EXPECT_EQ(early.exit.code, 0) << early.err;
  EXPECT_NE(early.err.find("nothing is due; next: 2026-11-28T02-30Z"), std::string::npos) << early.err;

  const std::string out = "runs/2026-11-28T02-30Z/out.jsonl";
  Process first = start("job.yaml", "first", {"--due", "--at", "2026-11-28T02:30:00Z"});
  ASSERT_TRUE(comes_true([&] { return text(out + ".journal/rows").find(" row ") != std::string::npos; }))
      << text("first.err");
  const Captured beside = run("job.yaml", {"--due", "--at", "2026-11-28T02:31:00Z"});
  EXPECT_EQ(beside.exit.code, 1) << "never two at once: " << beside.err;
  first.signal(SIGKILL).value();
  EXPECT_EQ(first.wait().signal, SIGKILL);
  // A day later it goes on, and then the next one is run; its input has changed.
  const Captured next = run("job.yaml", {"--due", "--at", "2026-11-29T01:00:00Z"});
  EXPECT_EQ(next.exit.code, 0) << next.err;
  EXPECT_NE(next.err.find("goes on in " + out), std::string::npos) << next.err;
  EXPECT_EQ(text(out), text("whole.jsonl"));
  write_rows(3);
  const Captured day = run("job.yaml", {"--due", "--at", "2026-11-29T03:00:00Z"});
  EXPECT_EQ(day.exit.code, 0) << day.err;
  EXPECT_NE(day.err.find("3 rows in runs/2026-11-29T02-30Z/out.jsonl"), std::string::npos) << day.err;
  EXPECT_EQ(text(out), text("whole.jsonl"));
}

TEST_F(BatchShared, a_run_that_can_never_end_holds_up_no_later_one) {
  write_job("job.yaml", "runs/out.jsonl", "schedule: { cron: 30 2 * * *, start_within: 2h }\n");
  Process first = start("job.yaml", "first", {"--due", "--at", "2026-11-28T02:30:00Z"});
  ASSERT_TRUE(comes_true([&] {
    return text("runs/2026-11-28T02-30Z/out.jsonl.journal/rows").find(" row ") != std::string::npos;
  })) << text("first.err");
  first.signal(SIGKILL).value();
  EXPECT_EQ(first.wait().signal, SIGKILL);
  write_rows(3);  // of the next night: what was begun is of another input
  const Captured alone = run("job.yaml", {"--due", "--at", "2026-11-28T03:00:00Z"});
  EXPECT_NE(alone.exit.code, 0) << alone.err;
  const Captured next = run("job.yaml", {"--due", "--at", "2026-11-29T03:00:00Z"});
  EXPECT_EQ(next.exit.code, 0) << next.err;
  EXPECT_NE(next.err.find("3 rows in runs/2026-11-29T02-30Z/out.jsonl"), std::string::npos) << next.err;
}

TEST_F(BatchShared, stays_and_runs_at_its_times) {
  write_rows(4);
  write_job("job.yaml", "runs/out.jsonl", "schedule: '* * * * *'\n");
  Process stays = start("job.yaml", "stays", {"--on-schedule"});
  // The minute that has begun is due at once.
  ASSERT_TRUE(comes_true([&] { return text("stays.err").find("next: ") != std::string::npos; })) << text("stays.err");
  stays.signal(SIGTERM).value();
  EXPECT_EQ(stays.wait().code, 0) << text("stays.err");
  int outputs = 0;
  for (const auto& run : std::filesystem::directory_iterator(folder() / "runs"))
    outputs += std::filesystem::exists(run.path() / "out.jsonl") ? 1 : 0;
  EXPECT_GE(outputs, 1);
  EXPECT_NE(text("stays.err").find("4 rows in runs/"), std::string::npos) << text("stays.err");

  std::filesystem::remove(folder() / "rows.jsonl");
  std::filesystem::remove_all(folder() / "runs");
  Process fails = start("job.yaml", "fails", {"--on-schedule"});
  ASSERT_TRUE(comes_true([&] { return text("fails.err").find("failed; the schedule goes on") != std::string::npos; }));
  fails.signal(SIGTERM).value();
  EXPECT_EQ(fails.wait().code, 0) << text("fails.err");
}

TEST_F(BatchShared, the_example_runs_here_and_is_rendered_for_a_cluster) {
  std::filesystem::create_directories(folder() / "examples");
  std::filesystem::copy(SYSTOLE_SOURCE_DIR "/examples/embeddings", folder() / "examples/embeddings",
                        std::filesystem::copy_options::recursive);
  std::filesystem::create_directories(folder() / "path/to");
  std::filesystem::rename(folder() / "model", folder() / "path/to/model");
  // The model's context is shorter than a document.
  std::string job = text("examples/embeddings/job.yaml");
  job.replace(job.find("{title}\\n{text}"), std::string_view("{title}\\n{text}").size(), "{title}");
  systole_.write("examples/embeddings/job.yaml", job);
  const Captured ran = run("examples/embeddings/job.yaml", {"--due", "--at", "2026-11-28T02:00:00Z"});
  ASSERT_EQ(ran.exit.code, 0) << ran.err;
  const std::string vectors = text("vectors/2026-11-28T02-30+0100/vectors.jsonl");
  EXPECT_EQ(std::ranges::count(vectors, '\n'), 20);
  EXPECT_EQ(vectors.find("\"response\":null"), std::string::npos);
  EXPECT_NE(text("vectors/2026-11-28T02-30+0100/vectors.npy").find("'shape': (20, "), std::string::npos);

  const Captured rendered =
      systole_.run({"render", "examples/embeddings/cluster.yaml", "--on", "kubernetes", "--out", "there"});
  ASSERT_EQ(rendered.exit.code, 0) << rendered.err;
  const std::string objects = text("there/job.yaml");
  for (const char* part : {"kind: CronJob", "timeZone: Europe/Berlin", "completionMode: Indexed", "--due"})
    EXPECT_NE(objects.find(part), std::string::npos) << part;
  EXPECT_EQ(objects.find("cluster:"), std::string::npos) << "the pods need not know it";
  const Captured sent = systole_.run({"submit", "examples/embeddings/cluster.yaml", "--on", "kubernetes"});
  EXPECT_EQ(sent.exit.code, 3) << sent.err;
  EXPECT_NE(sent.err.find("hint: systole render examples/embeddings/cluster.yaml --on kubernetes"), std::string::npos);
  systole_.write("examples/embeddings/cluster.yaml", text("examples/embeddings/cluster.yaml") + "  imag: x\n");
  const Captured wrong = systole_.run({"render", "examples/embeddings/cluster.yaml", "--on", "kubernetes"});
  EXPECT_EQ(wrong.exit.code, 2);
  EXPECT_NE(wrong.err.find("cluster.yaml:20:3: error: unknown key 'imag'"), std::string::npos) << wrong.err;
}

}  // namespace
}  // namespace systole::cli
