#include "laws/ranked_job.h"

#include <csignal>
#include <fstream>
#include <sstream>
#include <thread>

#include "operate/observe/rank_files.h"
#include "operate/observe/run_files.h"

namespace systole::laws {
namespace {

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Named shared memory.
std::set<std::string> named_memory() {
  std::set<std::string> names;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm", ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.find("systole") != name.npos) names.insert(entry.path().string());
  }
  return names;
}

void rest() { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }

}  // namespace

void RankedRuns::SetUp() {
  before_ = named_memory();
  std::filesystem::create_directory(shop_.path("tmp"));
  if (is_sanitized()) GTEST_SKIP() << "has times that count: runs in the release build";
}

void RankedRuns::TearDown() {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string line = read(entry.path() / "cmdline");
    if (line.empty() || line.find("systole") == line.npos) continue;
    std::error_code ignored;
    const std::string cwd = std::filesystem::read_symlink(entry.path() / "cwd", ignored).string();
    EXPECT_FALSE(cwd.starts_with(shop_.path(""))) << "process " << entry.path().filename() << " is left: " << line;
  }
  for (const std::string& name : named_memory()) EXPECT_TRUE(before_.contains(name)) << name << " is left";
  for (const auto& entry : std::filesystem::directory_iterator(shop_.path("tmp")))
    ADD_FAILURE() << "a temporary file is left: " << entry.path();
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a child, or a zombie, is left";
}

std::vector<std::string> RankedRuns::words(const std::string& run, std::vector<std::string> more) {
  std::vector<std::string> all{"run",   "job.yaml",          "--folder", run,
                               "--set", "train.exact=false", "--set",    "train.batch=8"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

Process RankedRuns::start(const std::string& run, std::vector<std::string> words) const {
  Command command = shop_.command(std::move(words));
  command.env.emplace_back("TMPDIR", shop_.path("tmp"));
  command.out = ChildStream::file(shop_.path(run + ".out"));
  command.err = ChildStream::file(shop_.path(run + ".err"));
  return Process::start(command).value();
}

std::string RankedRuns::said(const std::string& run) const {
  return read(shop_.path(run + ".out")) + read(shop_.path(run + ".err"));
}

std::vector<Event> RankedRuns::events(const std::string& run) const {
  if (!std::filesystem::exists(shop_.path(run + "/events/000.jsonl"))) return {};
  return shop_.events(run);
}

std::vector<Event> RankedRuns::agent_events(const std::string& run) const {
  if (!std::filesystem::exists(shop_.path(run))) return {};
  const std::unique_ptr<Store> store = open_posix_store(shop_.path(run)).value();
  return read_agent_events(*store, "").value();
}

std::int64_t RankedRuns::last_step(const std::string& run) const {
  std::int64_t last = 0;
  for (const Event& event : events(run)) {
    if (const auto* ended = std::get_if<StepEnded>(&event.body)) last = ended->step;
  }
  return last;
}

bool RankedRuns::wait_until(Process& agent, const std::function<bool()>& what, Seconds longest) const {
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(longest.count());
  while (std::chrono::steady_clock::now() < until) {
    if (what()) return true;
    if (agent.has_ended()) return what();
    rest();
  }
  return false;
}

bool RankedRuns::wait_for_step(Process& agent, const std::string& run, std::int64_t step) const {
  return wait_until(agent, [&] { return last_step(run) >= step; });
}

std::vector<pid_t> RankedRuns::ranks_of(pid_t agent) {
  std::vector<pid_t> pids;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::istringstream stat(read(entry.path() / "stat"));
    pid_t pid = 0, parent = 0;
    std::string name;
    char state = 0;
    if (!(stat >> pid >> name >> state >> parent) || parent != agent || state == 'Z') continue;
    const std::string line = read(entry.path() / "cmdline");
    const std::size_t end = line.find('\0');
    if (end != line.npos && line.compare(end + 1, 5, std::string("rank\0", 5)) == 0) pids.push_back(pid);
  }
  return pids;
}

pid_t RankedRuns::pid_of_rank(pid_t agent, int rank) {
  for (const pid_t pid : ranks_of(agent)) {
    const std::string variables = read(fmt::format("/proc/{}/environ", pid));
    const std::string wanted = fmt::format("SYSTOLE_RANK={}", rank) + '\0';
    if (variables.starts_with(wanted) || variables.find('\0' + wanted) != variables.npos) return pid;
  }
  return -1;
}

void RankedRuns::end_at_once(Process& agent) const {
  if (!agent.has_ended()) {
    static_cast<void>(agent.signal(SIGINT));
    rest();
    static_cast<void>(agent.signal(SIGINT));
  }
  EXPECT_TRUE(agent.wait(Seconds(30.0)).has_value()) << "it hangs";
}

}  // namespace systole::laws
