#include "operate/observe/submitted_index.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "ground/base/text_file.h"
#include "operate/observe/index_tables.h"

namespace systole {
namespace {

struct Submitted : testing::Test {
  Submitted() {
    std::string name = (std::filesystem::temp_directory_path() / "systole-submitted-XXXXXX").string();
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  ~Submitted() override { std::filesystem::remove_all(folder_); }
  std::string file() const { return folder_ + "/index.sqlite"; }
  static SubmittedRow row(const std::string& run) {
    SubmittedRow row{.files = ~std::uint64_t{0} - 1};
    row.summary = {.run = run, .target = "slurm", .id = "17", .state = RunState::failed};
    row.summary.problem = "exit code 1: \"so\"\n";
    row.summary.exit_code = 1;
    row.folder = "runs/" + run;
    row.summary.since = "2026-11-24T00:00:00.000Z";
    row.by = "me@here";
    row.nodes = "n[0-3]";
    row.restarts = 2;
    row.node_seconds = 0.1;
    row.summary.cost = Dollars(12.25);
    row.summary.budget = Dollars(20);
    row.seen_at = 1'795'000'000;
    row.over = run == "b";
    row.told = "began 17_9 2 1000 1\n";
    row.jobs = {{"17_10", RunState::finished, "", "n0", 0, 1000, 1100},
                {"17_9", RunState::failed, "NODE_FAIL", "", 2, 1000, 0}};
    return row;
  }
  std::string folder_;
};

TEST_F(Submitted, rows_are_read_back_by_name_as_they_were_given) {
  SubmittedIndex index = SubmittedIndex::open(file()).value();
  SubmittedRow unknown = row("a");
  unknown.summary.cost.reset();
  unknown.summary.exit_code.reset();
  unknown.jobs.clear();
  index.change({}, std::vector{row("c"), unknown, row("b")}).value();
  EXPECT_EQ(index.list(true).value(), (std::vector{unknown, row("b"), row("c")}));
  SubmittedRow bare = row("b");
  bare.jobs.clear();
  EXPECT_EQ(SubmittedIndex::open(file()).value().list(false).value()[1], bare);
}

TEST_F(Submitted, another_row_of_a_run_takes_the_place_of_the_first) {
  SubmittedIndex index = SubmittedIndex::open(file()).value();
  index.change({}, std::vector{row("a"), row("b")}).value();
  SubmittedRow next = row("a");
  next.files = 1;
  next.jobs.resize(1);
  index.change(std::vector<std::string>{"b", "never there"}, std::vector{next}).value();
  EXPECT_EQ(index.list(true).value(), std::vector{next});
}

TEST_F(Submitted, of_a_change_that_fails_nothing_is_kept) {
  SubmittedIndex index = SubmittedIndex::open(file()).value();
  index.change({}, std::vector{row("a")}).value();
  Database other = Database::open(file()).value();
  other.execute("CREATE TRIGGER no BEFORE INSERT ON jobs WHEN NEW.run = 'c' BEGIN SELECT RAISE(FAIL, 'no'); END")
      .value();
  EXPECT_FALSE(index.change(std::vector<std::string>{"a"}, std::vector{row("b"), row("c")}).ok());
  EXPECT_EQ(index.list(true).value(), std::vector{row("a")});
}

TEST_F(Submitted, whatever_stands_in_its_place_is_cleared) {
  for (const std::string& text : {std::string(9000, 'x'), std::string("x"), std::string()}) {
    write_text_file(file(), text).value();
    clear_index(file()).value();
    EXPECT_TRUE(SubmittedIndex::open(file()).value().list(true).value().empty());
  }
}

TEST_F(Submitted, an_index_of_another_version_is_made_anew) {
  {
    Database older = Database::open(file()).value();
    older.execute("CREATE TABLE runs (folder TEXT PRIMARY KEY, file_bytes INTEGER)").value();
    older.execute("CREATE TABLE submitted (run TEXT)").value();
    older.execute("PRAGMA user_version = 3").value();
  }
  SubmittedIndex index = SubmittedIndex::open(file()).value();
  index.change({}, std::vector{row("a")}).value();
  EXPECT_EQ(index.list(true).value(), std::vector{row("a")});
}

}  // namespace
}  // namespace systole
