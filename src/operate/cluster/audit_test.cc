#include "operate/cluster/audit.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <sstream>
#include <thread>

#include "ground/base/text_file.h"

namespace systole {
namespace {

struct AuditFile : testing::Test {
  AuditFile() : folder_(made()), audit_(folder_, clock_) {
    for (const char* act : {"submit", "submitted", "stop"})
      hashes_.push_back(audit_.append(act, "line", Node::map({{"target", "slurm"}})).value());
  }
  ~AuditFile() override { std::filesystem::remove_all(folder_); }

  static std::string made() {
    std::string name = (std::filesystem::temp_directory_path() / "systole-audit-XXXXXX").string();
    return ::mkdtemp(name.data());
  }
  std::string file() const { return folder_ + "/audit.jsonl"; }
  std::string text() const { return read_text_file(file()).value(); }
  std::vector<std::string> lines() const {
    std::vector<std::string> lines;
    std::istringstream in(text());
    for (std::string line; std::getline(in, line);) lines.push_back(line + "\n");
    return lines;
  }
  void write(const std::string& text) const { write_text_file(file(), text).value(); }
  void expect_found(const std::string& why, int line) const {
    const Result<AuditCheck> check = verify_audit(folder_, hashes_);
    ASSERT_FALSE(check.ok());
    EXPECT_EQ(check.error().kind, ErrorKind::corrupt);
    EXPECT_NE(check.error().message.find(why), std::string::npos) << check.error().message;
    EXPECT_EQ(check.error().where.line, line);
  }

  FakeClock clock_;
  std::string folder_;
  Audit audit_;
  std::vector<std::string> hashes_;
};

TEST_F(AuditFile, holds_as_it_was_written) {
  const AuditCheck check = verify_audit(folder_, hashes_).value();
  EXPECT_EQ(check.lines, 3);
  EXPECT_EQ(check.last, hashes_[2]);
  const Node line = parse_json(lines()[1], "line").value();
  EXPECT_EQ(line.find("act")->text(), "submitted");
  EXPECT_EQ(line.find("previous")->text(), hashes_[0]);
  EXPECT_EQ(line.find("at")->text(), "2000-01-01T00:00:00.000Z");
}

TEST_F(AuditFile, is_its_owners_alone) {
  using std::filesystem::perms;
  EXPECT_EQ(std::filesystem::status(file()).permissions(), perms::owner_read | perms::owner_write);
  std::filesystem::permissions(file(), perms(0644));  // the mode that earlier versions wrote
  audit_.append("stop", "line", {}).value();
  EXPECT_EQ(std::filesystem::status(file()).permissions(), perms::owner_read | perms::owner_write);
}

TEST_F(AuditFile, a_changed_line_shows) {
  std::string changed = text();
  changed.replace(changed.find("submitted"), 9, "forgotten");
  write(changed);
  expect_found("changed", 2);
}

TEST_F(AuditFile, each_changed_byte_shows) {
  const std::string whole = text();
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string changed = whole;
    changed[i] = changed[i] == 'x' ? 'y' : 'x';
    write(changed);
    EXPECT_FALSE(verify_audit(folder_, hashes_).ok()) << i;
  }
}

TEST_F(AuditFile, a_line_taken_out_or_moved_shows) {
  const std::vector<std::string> l = lines();
  write(l[0] + l[2]);
  expect_found("does not follow", 2);
  write(l[1] + l[2]);
  expect_found("does not follow", 1);
  write(l[0] + l[2] + l[1]);
  expect_found("does not follow", 2);
  write(l[0] + l[1] + l[1] + l[2]);
  expect_found("does not follow", 3);
}

TEST_F(AuditFile, an_end_cut_off_shows_by_the_records) {
  const std::vector<std::string> l = lines();
  write(l[0] + l[1]);
  EXPECT_TRUE(verify_audit(folder_).ok()) << "the chain alone cannot know";
  expect_found("cut off", 2);
}

TEST_F(AuditFile, what_a_killed_writer_left_is_said) {
  write(text() + "{\"n\":4,\"at\":\"2000");
  expect_found("torn", 4);
  hashes_.push_back(audit_.append("purge", "line").value());
  EXPECT_EQ(verify_audit(folder_, hashes_).value().lines, 5);
  EXPECT_EQ(parse_json(lines()[3], "line").value().find("torn_bytes")->text(), "17");
}

TEST_F(AuditFile, is_read_without_what_a_writer_did_not_finish) {
  EXPECT_EQ(read_audit(folder_ + "/none").value().size(), 0U);
  write(text() + "{\"n\":4,\"at\":\"2000");
  const std::vector<Node> read = read_audit(folder_).value();
  ASSERT_EQ(read.size(), 3U);
  EXPECT_EQ(read[2].text_at("act"), "stop");
  write(lines()[0] + lines()[2]);
  EXPECT_EQ(read_audit(folder_).error().where.line, 2);
}

TEST_F(AuditFile, a_line_that_follows_from_the_others_sees_all_of_them) {
  const auto count = [](std::span<const Node> there) -> Result<Node> { return Node::map({{"there", there.size()}}); };
  audit_.append_after("count", "line", count).value();
  EXPECT_EQ(read_audit(folder_).value().back().text_at("there"), "3");
  const std::string before = text();
  const auto refused = [](std::span<const Node>) -> Result<Node> { return error(ErrorKind::invalid, "no"); };
  EXPECT_EQ(audit_.append_after("count", "line", refused).error().kind, ErrorKind::invalid);
  EXPECT_EQ(text(), before);
  std::string changed = before;
  changed.replace(changed.find("submitted"), 9, "forgotten");  // not the last line
  write(changed);
  EXPECT_EQ(audit_.append_after("count", "line", count).error().where.line, 2);
}

TEST_F(AuditFile, is_not_written_on_where_it_does_not_hold) {
  std::string changed = text();
  changed.replace(changed.rfind("stop"), 4, "slop");
  write(changed);
  EXPECT_EQ(audit_.append("purge", "line").error().kind, ErrorKind::corrupt);
  EXPECT_EQ(text(), changed);
}

TEST_F(AuditFile, writers_at_once_are_one_after_the_other) {
  std::vector<std::thread> writers;
  const std::unique_ptr<Clock> clock = real_clock();
  for (int i = 0; i < 4; ++i)
    writers.emplace_back([&] {
      Audit audit(folder_, *clock);
      for (int j = 0; j < 25; ++j) audit.append("submit", "line").value();
    });
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(verify_audit(folder_, hashes_).value().lines, 103);
}

}  // namespace
}  // namespace systole
