// A signal comes to the process that holds the lock, and to no other that has its number.

#include "ground/store/lock_holder.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "ground/base/testing/files.h"
#include "ground/store/lock.h"

namespace systole {
namespace {

// A child that holds the lock of `folder` until a signal ends it.
pid_t holder_of(const std::string& folder) {
  int ready[2];
  EXPECT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto lock = lock_folder(folder);
    if (::write(ready[1], lock.ok() ? "y" : "n", 1) != 1) ::_exit(1);
    while (true) ::pause();
  }
  char said = 'n';
  EXPECT_EQ(::read(ready[0], &said, 1), 1);
  EXPECT_EQ(said, 'y');
  ::close(ready[0]);
  ::close(ready[1]);
  return child;
}

// A child that does nothing.
pid_t other() {
  const pid_t child = ::fork();
  while (child == 0) ::pause();
  return child;
}

void end(pid_t child) {
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST(LockHolder, is_the_process_that_holds_it) {
  const TemporaryFolder folder;
  EXPECT_FALSE(LockHolder::of(folder.path()).value().has_value());
  const pid_t child = holder_of(folder.path());
  const LockHolder holder = LockHolder::of(folder.path()).value().value();
  EXPECT_EQ(holder.pid(), child);
  EXPECT_FALSE(holder.ends_within(Seconds(0.01)));
  holder.signal(SIGTERM).value();
  EXPECT_TRUE(holder.ends_within(Seconds(20.0)));
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
  EXPECT_TRUE(holder.signal(SIGTERM).ok()) << "it has ended";
  EXPECT_FALSE(LockHolder::of(folder.path()).value().has_value());
}

TEST(LockHolder, is_no_process_that_has_only_its_number) {
  const TemporaryFolder folder;
  const pid_t child = holder_of(folder.path()), stranger = other();
  std::ofstream(folder.path() + "/lock") << stranger << "\n";
  const auto seen = LockHolder::of(folder.path());
  ASSERT_FALSE(seen.ok());
  EXPECT_EQ(seen.error().kind, ErrorKind::busy);
  EXPECT_NE(seen.error().message.find(fmt::format("a process {} that cannot be seen", stranger)), std::string::npos)
      << seen.error().message;
  end(stranger);
  EXPECT_EQ(LockHolder::of(folder.path()).error().kind, ErrorKind::busy) << "a number of nobody";
  std::ofstream(folder.path() + "/lock") << "";
  EXPECT_EQ(LockHolder::of(folder.path()).error().kind, ErrorKind::busy) << "no number";
  end(child);
}

TEST(LockHolder, that_has_just_taken_the_lock_is_waited_for) {
  const TemporaryFolder folder;
  const pid_t child = holder_of(folder.path());
  std::ofstream(folder.path() + "/lock") << "";
  const pid_t writer = ::fork();
  if (writer == 0) {
    ::usleep(60'000);
    std::ofstream(folder.path() + "/lock") << child << std::endl;
    ::_exit(0);
  }
  EXPECT_EQ(LockHolder::of(folder.path()).value().value().pid(), child);
  ::waitpid(writer, nullptr, 0);
  end(child);
}

}  // namespace
}  // namespace systole
