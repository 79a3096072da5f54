#include "operate/cluster/record_stamps.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "ground/base/text_file.h"

namespace systole {
namespace {

namespace fs = std::filesystem;

struct Stamps : testing::Test {
  Stamps() : folder_(made()), submissions_(Submissions::open(folder_).value()) {
    record_.run = "a";
    submissions_.write(record_).value();
  }
  ~Stamps() override { fs::remove_all(folder_); }
  static std::string made() {
    std::string name = (fs::temp_directory_path() / "systole-stamps-XXXXXX").string();
    return ::mkdtemp(name.data());
  }
  std::optional<std::uint64_t> stamp() { return record_stamps(submissions_).value().at(0).files; }
  std::string path(const std::string& leaf) const { return submissions_.place("a") + "/" + leaf; }

  std::string folder_;
  Submissions submissions_;
  Record record_;
};

TEST_F(Stamps, stay_while_nothing_is_written) {
  const auto before = stamp();
  ASSERT_TRUE(before);
  write_text_file(path("17.log"), "a line").value();
  write_text_file(path("stop"), "").value();
  EXPECT_EQ(stamp(), before);
}

TEST_F(Stamps, tell_of_a_record_that_was_written_again) {
  auto before = stamp();
  const auto when = fs::last_write_time(path("record.json"));
  submissions_.write(record_).value();
  fs::last_write_time(path("record.json"), when);
  EXPECT_NE(stamp(), before) << "another file of the same size and time";
  before = stamp();
  std::string text = read_text_file(path("record.json")).value();
  text[0] = '[';
  write_text_file(path("record.json"), text).value();
  fs::last_write_time(path("record.json"), when + std::chrono::milliseconds(1));
  EXPECT_NE(stamp(), before) << "the same file with other bytes";
}

TEST_F(Stamps, tell_of_a_ledger_that_came_and_of_one_that_grew) {
  auto before = stamp();
  write_text_file(path("ledger"), "began 17 0 1000 4\n").value();
  EXPECT_NE(stamp(), before);
  before = stamp();
  const auto when = fs::last_write_time(path("ledger"));
  std::ofstream(path("ledger"), std::ios::app) << "ended 17 0 1100 0\n";
  fs::last_write_time(path("ledger"), when);
  EXPECT_NE(stamp(), before);
}

TEST_F(Stamps, are_of_every_run_and_of_nothing_else) {
  for (int i = 0; i < 600; ++i) {
    record_.run = fmt::format("run-{:03}", i);
    submissions_.write(record_).value();
  }
  fs::create_directories(submissions_.path() + "/" + kProgramsFolder);
  write_text_file(submissions_.path() + "/audit.jsonl", "").value();
  const std::vector<RecordStamp> stamps = record_stamps(submissions_).value();
  ASSERT_EQ(stamps.size(), 601u);
  EXPECT_EQ(stamps[600].run, "run-599");
  std::set<std::uint64_t> unlike;
  for (const RecordStamp& stamp : stamps) unlike.insert(stamp.files.value());
  EXPECT_EQ(unlike.size(), 601u);
}

TEST_F(Stamps, are_nothing_where_a_file_cannot_be_looked_at) {
  fs::remove(path("record.json"));
  fs::create_symlink("record.json", path("record.json"));  // a cycle
  EXPECT_FALSE(stamp());
}

}  // namespace
}  // namespace systole
