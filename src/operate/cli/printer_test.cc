// Output on a terminal, through a pseudo-terminal.

#include "operate/cli/printer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <memory>

#include "ground/base/clock.h"
#include "ground/base/fd.h"
#include "operate/cli/testing/run_systole.h"
#include "operate/cli/testing/small_workload.h"

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
    clock.advance(Seconds(0.0001));  // a second in total
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
  out.progress({});  // drawn by another process of ours
  EXPECT_TRUE(terminal.text().ends_with(kClear));
}

TEST(Printer, quiet_is_quiet) {
  FakeClock clock;
  Terminal terminal(80);
  Printer out(clock, stdout, terminal.file());
  out.set_quiet(true);
  out.progress("rows: 10");
  out.message("a message");
  out.note("a note", "a hint");
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

TEST(Printer, an_error_as_json_has_its_code_and_key_where_they_are_known) {
  const Error known = key_error(ErrorKind::invalid, "train.batch", "-1 is too low")
                          .at({"job.yaml", 3, 7})
                          .coded(ErrorCode::unexpected_value);
  EXPECT_EQ(to_json(error_node(known)),
            R"({"kind":"invalid","message":"train.batch: -1 is too low","file":"job.yaml","line":3,"col":7,)"
            R"("code":"unexpected_value","key":"train.batch"})");
  EXPECT_EQ(to_json(error_node(error(ErrorKind::io, "x"))), R"({"kind":"io","message":"x"})");
}

TEST(Printer, errors_and_notices_fold_on_a_terminal) {
  ::setenv("NO_COLOR", "1", 1);
  FakeClock clock;
  Terminal terminal(30);
  Printer out(clock, stdout, terminal.file());
  out.notice("small: runs/small-1 on this machine, 1 MiB planned");
  out.warning("it is slower than it would be elsewhere", "systole calibrate --threads 12 --out there");
  out.note("quota: 16 GPUs; usually 0 in new projects", "ask for more in the console of the project");
  out.error(error(ErrorKind::io, "nothing that is offered will do"));
  EXPECT_EQ(terminal.text(),
            "small: runs/small-1 on this\r\n    machine, 1 MiB planned\r\n"
            "warning: it is slower than it\r\n    would be elsewhere\r\n"
            "  hint: systole calibrate --threads 12 --out there\r\n"
            "note: quota: 16 GPUs; usually\r\n    0 in new projects\r\n"
            "  hint: ask for more in the console of the project\r\n"
            "error: nothing that is offered\r\n    will do\r\n");
}

TEST(Printer, folds_on_a_terminal_alone) {
  const std::string words = "one two three four five six seven eight nine ten eleven twelve";
  FakeClock clock;
  Terminal terminal(30);
  Printer shown(clock, terminal.file(), stderr);
  EXPECT_EQ(shown.width(), 30);
  shown.prose(words);
  EXPECT_EQ(terminal.text(), "one two three four five six\r\n    seven eight nine ten\r\n    eleven twelve\r\n");
  std::FILE* file = std::tmpfile();
  Printer piped(clock, file, stderr);
  EXPECT_EQ(piped.width(), kUnfolded);
  piped.prose(words);
  EXPECT_EQ(std::ftell(file), static_cast<long>(words.size()) + 1);
  std::fclose(file);
}

// The same through the program, as a user sees it.
TEST(Terminals, data_build_leaves_nothing_behind) {
  const SystoleRunner systole;
  std::string text;
  for (int i = 0; i < 40'000; ++i) text += fmt::format("word {} of a list, in its {}th line\n", i * 7 % 50, i);
  systole.write("some.txt", text);
  systole.write("job.yaml", R"(systole: 1
name: text
model: { family: gpt, layers: 1, width: 16, heads: 2, context: 32 }
data: { train: { files: some.txt }, held_out: { fraction: 10% }, tokenizer: { vocabulary: 300 } }
train: { batch: 2, steps: 2, optimizer: { rate: 1e-3 } }
)");
  const std::unique_ptr<Clock> clock = real_clock();
  const Seconds began = clock->now();
  const Captured seen = systole.shell("script -qec \"$SYSTOLE data build job.yaml\" /dev/null");
  const double took = (clock->now() - began).count();
  ASSERT_EQ(seen.exit.code, 0) << seen.out << seen.err;
  EXPECT_LT(static_cast<double>(times(seen.out, kClear)), 20 + 20 * took) << "ten a second, of two processes";
  const std::string painted = std::string(kClear) + "data: ";
  for (std::size_t at = seen.out.find(painted); at != seen.out.npos; at = seen.out.find(painted, at)) {
    at += painted.size();
    const std::size_t next = std::min(seen.out.find_first_of("\r\n", at), seen.out.size());
    EXPECT_EQ(seen.out.substr(next, std::string_view(kClear).size()), kClear) << seen.out.substr(at, 80);
  }
}

// A terminal that does not report its width has 80 columns.
TEST(Terminals, what_a_run_and_its_checkpoint_say_fits) {
  const SystoleRunner systole;
  systole.write("job.yaml", kWorkload);
  const std::string folder = "runs/a-run-whose-name-alone-takes-more-than-the-half-of-a-line";
  const auto lines_of = [&](const std::string& words) {
    const Captured seen = systole.shell(fmt::format("script -qec \"$SYSTOLE {}\" /dev/null", words));
    EXPECT_EQ(seen.exit.code, 0) << seen.out << seen.err;
    std::vector<std::string> lines;
    for (std::size_t begun = 0, end; (end = seen.out.find("\r\n", begun)) != seen.out.npos; begun = end + 2)
      lines.push_back(seen.out.substr(begun, end - begun));
    return lines;
  };
  const std::vector<std::string> run = lines_of("run job.yaml --backend reference --folder " + folder);
  const auto first =
      std::ranges::find_if(run, [](const std::string& line) { return line.find("small: ") != line.npos; });
  ASSERT_NE(first, run.end());
  EXPECT_LE(first->size() - first->find("small: "), 80u) << *first;
  EXPECT_TRUE((first + 1)->starts_with("    ")) << *(first + 1);
  const std::vector<std::string> shown = lines_of("ckpt show " + folder);
  EXPECT_NE(std::ranges::find(shown, "extra"), shown.end());
  for (const std::string& line : shown) EXPECT_LE(line.size(), 80u) << line;
}

TEST(Terminals, head_ends_every_command_quietly) {
  const SystoleRunner systole;
  systole.write("job.yaml", kWorkload);
  for (const char* command : {"explain keys", "catalog prices", "run job.yaml --backend reference --folder r",
                              "plan job.yaml", "show program job.yaml --all", "runs", "help"}) {
    const Captured seen = systole.shell(fmt::format("trap '' PIPE; $SYSTOLE {} -q 2>err | true; cat err", command));
    EXPECT_EQ(seen.out.find("error"), std::string::npos) << command << ": " << seen.out;
    EXPECT_EQ(seen.out.find("roken pipe"), std::string::npos) << command << ": " << seen.out;
  }
}

}  // namespace
}  // namespace systole::cli
