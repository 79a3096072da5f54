#include "operate/observe/index.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "operate/observe/testing/tiny_run.h"

namespace systole {
namespace {

class Runs : public testing::Test {
 protected:
  Runs() {
    std::string name = (std::filesystem::temp_directory_path() / "systole-runs-XXXXXX").string();
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    store_ = open_posix_store(folder_).value();
    write_tiny_run(*store_, "a-1", "a", "2026-01-01T00:00:00.000Z");
    write_tiny_run(*store_, "b-1", "b", "2026-01-03T00:00:00.000Z");
    write_tiny_run(*store_, "a-2", "a", "2026-01-02T00:00:00.000Z");
    store_->make_dirs("not-a-run").value();
  }
  ~Runs() override { std::filesystem::remove_all(folder_); }
  std::string file() const { return folder_ + "/index.sqlite"; }

  std::string folder_;
  std::unique_ptr<Store> store_;
};

TEST_F(Runs, rebuilding_a_deleted_index_gives_the_same_rows) {
  std::vector<RunRow> before;
  {
    RunIndex index = RunIndex::open(file()).value();
    EXPECT_EQ(index.refresh(*store_).value(), 3);
    before = index.list().value();
  }
  ASSERT_TRUE(std::filesystem::remove(file()));
  RunIndex index = RunIndex::open(file()).value();
  EXPECT_TRUE(index.list().value().empty());
  EXPECT_EQ(index.rebuild(*store_).value(), 3);
  EXPECT_EQ(index.list().value(), before);
  ASSERT_EQ(before.size(), 3u);
  EXPECT_EQ(before[0].summary.run, "b-1");  // newest first
  EXPECT_EQ(before[1].summary.run, "a-2");
  RunRow want{.opened_at = "2026-01-03T00:00:00.000Z", .processes = 1, .parameters = 10, .seconds = Seconds(5)};
  want.summary = {.run = "b-1", .workload = "b", .state = RunState::finished, .step = 2, .of = 4, .tokens = 16};
  want.summary.loss = 2.0;
  want.summary.bits_per_byte = 1.5;
  want.summary.since = "2026-01-03T00:00:00.000Z";
  want.extent = before[0].extent;
  EXPECT_EQ(before[0], want);
}

TEST_F(Runs, refresh_reads_what_grew_and_forgets_what_is_gone) {
  RunIndex index = RunIndex::open(file()).value();
  index.refresh(*store_).value();
  EXPECT_EQ(index.refresh(*store_).value(), 0);
  std::filesystem::remove_all(folder_ + "/a-1");
  write_events(*store_, "b-1/events/001.jsonl",
               {opened_event("b", "2026-01-04T00:00:00.000Z", 1), step_event(2, 1.75), step_event(3, 1.5)});
  EXPECT_EQ(index.refresh(*store_).value(), 2);
  const std::vector<RunRow> rows = index.list().value();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].summary.step, 3);
  EXPECT_EQ(rows[0].processes, 2);
  EXPECT_EQ(rows[0].summary.loss, 1.5);
  EXPECT_EQ(rows[0].summary.state, RunState::running) << "the last process left no end";
  EXPECT_EQ(rows[0].summary.since, "2026-01-03T00:00:00.000Z");
}

TEST_F(Runs, refresh_sees_each_way_in_which_a_run_changes) {
  RunIndex index = RunIndex::open(file()).value();
  index.refresh(*store_).value();
  const auto refreshed = [&] { return index.refresh(*store_).value(); };
  std::ofstream(folder_ + "/a-1/events/000.jsonl", std::ios::app) << to_json_line(step_event(3, 1.0));
  EXPECT_EQ(refreshed(), 1) << "its last process wrote";
  write_events(*store_, "a-1/events/001.jsonl", {});
  EXPECT_EQ(refreshed(), 1) << "another process, which wrote nothing yet";
  std::ofstream(folder_ + "/a-1/plan.json", std::ios::app) << "\n";
  EXPECT_EQ(refreshed(), 1) << "another plan, while it is open";
  std::filesystem::remove(folder_ + "/a-1/plan.json");
  EXPECT_EQ(refreshed(), 1) << "no plan";
  std::filesystem::remove_all(folder_ + "/a-1/events");
  EXPECT_EQ(refreshed(), 1) << "it is no run any more";
  EXPECT_EQ(index.list().value().size(), 2u);
  EXPECT_EQ(refreshed(), 0);
}

TEST_F(Runs, damaged_events_make_a_damaged_row_not_an_error) {
  std::ofstream(folder_ + "/a-1/events/000.jsonl", std::ios::app) << "{\"event\":\n";
  RunIndex index = RunIndex::open(file()).value();
  EXPECT_EQ(index.rebuild(*store_).value(), 3);
  EXPECT_EQ(summarize_run(*store_, "a-1").value().summary.state, RunState::damaged);
}

TEST_F(Runs, a_file_that_is_no_index_is_named_with_the_way_out) {
  std::ofstream(file()) << std::string(4096, 'x');
  const auto index = RunIndex::open(file());
  ASSERT_FALSE(index.ok());
  EXPECT_EQ(index.error().kind, ErrorKind::corrupt);
  EXPECT_NE(index.error().hint.find("rm "), std::string::npos);
}

TEST_F(Runs, find_run_by_folder_name_number_and_newest) {
  EXPECT_EQ(find_run(folder_, "a-1").value(), folder_ + "/a-1");
  EXPECT_EQ(find_run("elsewhere", folder_ + "/a-1").value(), folder_ + "/a-1");
  EXPECT_EQ(find_run(folder_, "2").value(), folder_ + "/a-2");
  EXPECT_EQ(find_run(folder_, "").value(), folder_ + "/b-1");
  EXPECT_EQ(find_run(folder_, "1").error().kind, ErrorKind::invalid);  // a-1 and b-1
  const Error absent = find_run(folder_, "a-3").error();
  EXPECT_EQ(absent.kind, ErrorKind::not_found);
  EXPECT_NE(absent.hint.find("'a-1'"), std::string::npos) << absent.hint;
}

TEST_F(Runs, find_run_says_which_run_has_an_event_file_that_leads_nowhere) {
  for (const char* run : {"0-first", "c-1"}) {  // sorted before and after the good ones
    std::filesystem::create_directories(folder_ + "/" + run + "/events");
    std::filesystem::create_symlink("gone", folder_ + "/" + run + "/events/000.jsonl");
    const Result<std::string> newest = find_run(folder_, "");
    ASSERT_FALSE(newest.ok()) << run;
    EXPECT_EQ(newest.error().kind, ErrorKind::not_found);
    EXPECT_NE(newest.error().message.find(run), std::string::npos) << newest.error().message;
    std::filesystem::remove_all(folder_ + "/" + run);
  }
}

TEST_F(Runs, the_next_name_is_above_all_there_are) {
  EXPECT_EQ(next_run_name(store_.get(), "a"), "a-3");
  EXPECT_EQ(next_run_name(store_.get(), "new"), "new-1");
  EXPECT_EQ(next_run_name(nullptr, "a"), "a-1");
}

}  // namespace
}  // namespace systole
