#include "ground/store/lock.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

namespace systole {
namespace {

class LockFolder : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "systole-lock-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    path_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(path_); }
  std::string path_;
};

TEST_F(LockFolder, refuses_the_second_and_names_the_first) {
  Result<std::unique_ptr<FileLock>> first = lock_folder(path_);
  ASSERT_TRUE(first.ok());
  const Result<std::unique_ptr<FileLock>> second = lock_folder(path_);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().kind, ErrorKind::busy);
  EXPECT_NE(second.error().message.find(std::to_string(::getpid())), std::string::npos);
  first.value().reset();
  EXPECT_TRUE(lock_folder(path_).ok());
}

TEST_F(LockFolder, is_waited_for_as_long_as_said) {
  FakeClock clock;
  const auto first = lock_folder(path_).value();
  EXPECT_EQ(lock_folder(path_, Seconds(5.0), clock).error().kind, ErrorKind::busy);
  EXPECT_GE(clock.now(), Seconds(5.0));
}

TEST_F(LockFolder, who_holds_it_is_told_while_it_is_waited_for_and_may_end_the_wait) {
  FakeClock clock;
  auto first = lock_folder(path_).value();
  std::vector<std::string> told;
  const auto given_back = lock_folder(path_, Seconds(5.0), clock, [&](const std::string& holder) -> Status {
    told.push_back(holder);
    if (told.size() == 3) first.reset();
    return {};
  });
  EXPECT_TRUE(given_back.ok());
  EXPECT_EQ(told, std::vector<std::string>(3, "process " + std::to_string(::getpid())));
  const auto ended = lock_folder(path_, Seconds(5.0), clock,
                                 [](const std::string&) -> Status { return error(ErrorKind::exists, "enough"); });
  EXPECT_EQ(ended.error().message, "enough");
  EXPECT_LT(clock.now(), Seconds(5.0));
}

TEST_F(LockFolder, of_a_folder_that_was_taken_away_holds_no_other_one) {
  const auto first = lock_folder(path_).value();
  std::filesystem::remove_all(path_);
  EXPECT_EQ(lock_folder(path_).error().kind, ErrorKind::not_found);
  std::filesystem::create_directory(path_);
  EXPECT_TRUE(lock_folder(path_).ok());
}

TEST_F(LockFolder, is_given_back_by_a_kill) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const Result<std::unique_ptr<FileLock>> held = lock_folder(path_);
    const char answer = held.ok() ? 'y' : 'n';
    if (::write(ready[1], &answer, 1) == 1) ::pause();
    ::_exit(1);
  }
  char answer = 0;
  ASSERT_EQ(::read(ready[0], &answer, 1), 1);
  EXPECT_EQ(answer, 'y');
  const Result<std::unique_ptr<FileLock>> refused = lock_folder(path_);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().hint.find(std::to_string(child)), std::string::npos);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(lock_folder(path_).ok());
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_F(LockFolder, needs_the_folder) { EXPECT_EQ(lock_folder(path_ + "/no").error().kind, ErrorKind::not_found); }

TEST_F(LockFolder, is_looked_at_without_a_trace) {
  EXPECT_FALSE(is_locked(path_).value());
  EXPECT_TRUE(std::filesystem::is_empty(path_)) << "it made a file";
  auto lock = lock_folder(path_).value();
  EXPECT_TRUE(is_locked(path_).value());
  lock.reset();
  EXPECT_FALSE(is_locked(path_).value());
  EXPECT_TRUE(lock_folder(path_).ok()) << "it kept the lock";
  EXPECT_FALSE(is_locked(path_ + "/absent").value());
}

}  // namespace
}  // namespace systole
