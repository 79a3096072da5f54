#include "laws/still_process.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "ground/base/testing/files.h"

namespace systole::laws {
namespace {

struct FullPipe {
  int ends[2] = {-1, -1};
  FullPipe() {
    CHECK(pipe2(ends, O_CLOEXEC) == 0, "no pipe");
    fcntl(ends[1], F_SETPIPE_SZ, 4096);
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    const std::string page(4096, '.');
    while (write(ends[1], page.data(), page.size()) > 0) continue;
    fcntl(ends[1], F_SETFL, 0);
  }
  ~FullPipe() {
    close(ends[0]);
    if (ends[1] >= 0) close(ends[1]);
  }
  void drain() {
    close(ends[1]);
    ends[1] = -1;
    char page[4096];
    while (read(ends[0], page, sizeof page) > 0) continue;
  }
};

// The CPU time of all its threads, and whether it sleeps: the fields after the name in /proc/PID/stat.
struct Stand {
  bool sleeps = false;
  std::string time;
};
Stand stand_of(pid_t pid) {
  const std::string stat = text_of(fmt::format("/proc/{}/stat", pid));
  const std::size_t name = stat.rfind(')');
  if (name == stat.npos || name + 2 >= stat.size()) return {};
  std::size_t at = name + 2;
  for (int field = 3; field < 14; ++field) at = stat.find(' ', at) + 1;
  return {stat[name + 2] == 'S', stat.substr(at, stat.find(' ', stat.find(' ', at) + 1) - at)};
}

}  // namespace

Result<std::string> mapped_at_its_end(Command command) {
  FullPipe out;
  command.out = ChildStream::to(out.ends[1]);
  command.err = ChildStream::null();
  Process child = TRY(Process::start(command));
  constexpr int kStill = 20;  // checks, 20 ms apart, without progress
  Stand last;
  for (int still = 0; still < kStill;) {
    if (child.has_ended())
      return error(ErrorKind::invalid, "it ended before it wrote a result: {}", to_string(child.wait()));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const Stand now = stand_of(child.pid());
    still = now.sleeps && now.time == last.time ? still + 1 : 0;
    last = now;
  }
  std::string maps = text_of(fmt::format("/proc/{}/maps", child.pid()));
  out.drain();
  const Exit exit = child.wait();
  if (!exit.ok()) return error(ErrorKind::invalid, "{}", to_string(exit));
  return maps;
}

}  // namespace systole::laws
