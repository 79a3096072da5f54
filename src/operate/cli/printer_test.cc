// What a terminal gets, by way of a pseudo-terminal.

#include "operate/cli/printer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <csignal>

#include "ground/base/clock.h"
#include "ground/base/fd.h"

namespace systole::cli {
namespace {

class Terminal {
 public:
  explicit Terminal(int columns) {
    int ours = -1, theirs = -1;
    winsize size{};
    size.ws_col = static_cast<unsigned short>(columns);
    size.ws_row = 24;
    CHECK(openpty(&ours, &theirs, nullptr, nullptr, &size) == 0, "no pseudo-terminal");
    fcntl(ours, F_SETFL, O_NONBLOCK);
    ours_ = Fd(ours);
    file_ = fdopen(theirs, "w");
  }
  ~Terminal() { std::fclose(file_); }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  std::FILE* file() { return file_; }
  std::string text() {
    char part[4096];
    for (ssize_t got = 0; (got = ::read(ours_.get(), part, sizeof part)) > 0;)
      seen_.append(part, static_cast<std::size_t>(got));
    return seen_;
  }

 private:
  Fd ours_;
  std::FILE* file_;
  std::string seen_;
};

std::size_t times(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

constexpr const char* kClear = "\r\x1b[K";

TEST(Printer, repaints_progress_ten_times_a_second) {
  FakeClock clock;
  Terminal terminal(80);
  Printer out(clock, stdout, terminal.file());
  for (int i = 0; i < 10'000; ++i) {
    out.progress(fmt::format("row {}", i));
    clock.advance(Seconds(0.0001));  // all of it: a second
    if (i % 100 == 0) terminal.text();
  }
  EXPECT_LE(times(terminal.text(), kClear), 11u);
  EXPECT_GE(times(terminal.text(), kClear), 9u);
}

TEST(Printer, what_comes_next_removes_progress) {
  FakeClock clock;
  Terminal terminal(80);
  Printer out(clock, terminal.file(), terminal.file());
  out.progress("rows: 10");
  out.data("done");
  EXPECT_EQ(terminal.text(), std::string(kClear) + "rows: 10" + kClear + "done\r\n");
  out.progress({});  // what another process of ours drew
  EXPECT_TRUE(terminal.text().ends_with(kClear));
}

TEST(Printer, quiet_is_quiet) {
  FakeClock clock;
  Terminal terminal(80);
  Printer out(clock, stdout, terminal.file());
  out.set_quiet(true);
  out.progress("rows: 10");
  out.message("a message");
  out.warning("a warning", "a hint");
  out.warning(error(ErrorKind::io, "another").at({"f", 1, 2}));
  EXPECT_EQ(terminal.text(), "");
  out.error(error(ErrorKind::io, "an error"));
  EXPECT_NE(terminal.text().find("an error"), std::string::npos);
}

TEST(Printer, a_reader_that_goes_away_is_no_error) {
  std::signal(SIGPIPE, SIG_IGN);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  std::FILE* file = fdopen(ends[1], "w");
  FakeClock clock;
  Printer out(clock, file, stderr);
  out.data("nobody reads this");
  EXPECT_TRUE(out.closed());
  errno = 0;
  EXPECT_TRUE(out.finish().ok());
  std::fclose(file);
}

}  // namespace
}  // namespace systole::cli
