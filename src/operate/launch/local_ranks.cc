#include "operate/launch/local_ranks.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "ground/base/os_error.h"

namespace systole {
namespace {

constexpr std::size_t kLongestLine = 16 * 1024;  // longer lines are cut for the caller, not in the file
constexpr int kPiecesAtOnce = 16;                // of one rank before the next is read

}  // namespace

struct LocalRanks::Running {
  Process process;
  Fd out, log;
  std::string line;  // unfinished line
  bool log_broken = false;
};

std::string LocalRanks::log_name(std::uint64_t generation, int rank) {
  return fmt::format("rank-{}.generation-{}.log", rank, generation);
}

Result<std::unique_ptr<LocalRanks>> LocalRanks::make(std::string log_folder, LineSink line) {
  OrphanGuard guard = TRY(OrphanGuard::start());
  return std::unique_ptr<LocalRanks>(new LocalRanks(std::move(log_folder), std::move(line), std::move(guard)));
}

LocalRanks::LocalRanks(std::string log_folder, LineSink line, OrphanGuard guard)
    : folder_(std::move(log_folder)), line_(std::move(line)), guard_(std::move(guard)) {}

LocalRanks::~LocalRanks() {
  kill();
  for (auto& [rank, running] : ranks_) {
    running->process.wait();
    guard_.forget(running->process.pid());
  }
}

Status LocalRanks::start(std::uint64_t generation, int rank, Command command) {
  CHECK(ranks_.empty() || generation_ == generation, "rank {} of generation {} among generation {}", rank, generation,
        generation_);
  CHECK(!ranks_.contains(rank), "rank {} runs", rank);
  generation_ = generation;
  if (!guard_.alive()) {
    std::vector<pid_t> groups;
    for (const auto& [other, running] : ranks_) groups.push_back(running->process.pid());
    TRY(guard_.revive(groups));
  }
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return os_error(errno, "make a pipe");
  Fd ours(ends[0]), theirs(ends[1]);
  ::fcntl(ours.get(), F_SETFL, O_NONBLOCK);
  const std::string path = folder_ + "/" + log_name(generation, rank);
  Fd log(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));  // a program may print secrets
  if (log.get() < 0) return os_error(errno, "open", path);
  command.in = ChildStream::null();
  command.out = command.err = ChildStream::to(theirs.get());  // one pipe, to keep their order
  command.own_group = command.dies_with_parent = true;
  command.announce = guard_.socket();
  Process process = TRY(Process::start(command));
  ranks_[rank] = std::unique_ptr<Running>(new Running{std::move(process), std::move(ours), std::move(log), {}, false});
  return Done{};
}

std::vector<RankExited> LocalRanks::poll(Seconds wait) {
  std::vector<pollfd> ends;
  for (const auto& [rank, running] : ranks_) {
    if (running->out.get() >= 0) ends.push_back({running->out.get(), POLLIN, 0});
  }
  ::poll(ends.data(), ends.size(), static_cast<int>(std::max(wait.count() * 1e3, 0.0)));
  std::vector<RankExited> ended;
  for (auto it = ranks_.begin(); it != ranks_.end();) {
    const bool gone = it->second->process.has_ended();  // checked before reading, so the last output is read below
    read_from(it->first, *it->second);
    if (!gone) {
      ++it;
      continue;
    }
    ended.push_back(finish(it->first, *it->second));
    it = ranks_.erase(it);
  }
  std::stable_sort(ended.begin(), ended.end(),
                   [](const RankExited& a, const RankExited& b) { return (a.signal != 0) > (b.signal != 0); });
  return ended;
}

void LocalRanks::read_from(int rank, Running& running) {
  std::array<char, 16 * 1024> piece;
  for (int i = 0; i < kPiecesAtOnce && running.out.get() >= 0; ++i) {
    const ssize_t got = ::read(running.out.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return;
    if (got == 0) {
      running.out = Fd();
      return;
    }
    take(rank, running, {piece.data(), static_cast<std::size_t>(got)});
  }
}

void LocalRanks::take(int rank, Running& running, std::string_view text) {
  for (std::string_view rest = text; !rest.empty() && !running.log_broken;) {
    const ssize_t wrote = ::write(running.log.get(), rest.data(), rest.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) {  // a failed log does not stop training
      running.log_broken = true;
      line_(rank, to_string(os_error(errno, "write the log of this rank to", folder_)));
      break;
    }
    rest.remove_prefix(static_cast<std::size_t>(wrote));
  }
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::size_t length = std::min({end, text.size(), kLongestLine - running.line.size()});
    running.line += text.substr(0, length);
    text.remove_prefix(length);
    const bool ends = !text.empty() && text.front() == '\n';
    if (ends) text.remove_prefix(1);
    if (ends || running.line.size() >= kLongestLine) {
      line_(rank, running.line);
      running.line.clear();
    }
  }
}

// After a rank has ended: kills what it left running in its group, while its pid is still reserved.
RankExited LocalRanks::finish(int rank, Running& running) {
  (void)running.process.signal_group(SIGKILL);
  const Exit exit = running.process.wait();
  guard_.forget(running.process.pid());
  read_from(rank, running);
  if (!running.line.empty()) line_(rank, running.line);
  return {generation_, rank, exit.code, exit.signal};
}

void LocalRanks::signal(int number) {
  for (auto& [rank, running] : ranks_) (void)running->process.signal_group(number);
}

std::vector<int> LocalRanks::running() const {
  std::vector<int> numbers;
  for (const auto& [rank, running] : ranks_) numbers.push_back(rank);
  return numbers;
}

pid_t LocalRanks::pid_of(int rank) const {
  const auto found = ranks_.find(rank);
  return found == ranks_.end() ? -1 : found->second->process.pid();
}

}  // namespace systole
