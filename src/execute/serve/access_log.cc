#include "execute/serve/access_log.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "execute/serve/request_times.h"
#include "ground/base/os_error.h"
#include "ground/base/sigpipe.h"

namespace systole {
namespace {

using std::chrono::steady_clock;

constexpr std::size_t kMostHeld = std::size_t{16} << 20;  // bytes of lines that wait for the file
constexpr std::size_t kPipePiece = 4096;                  // what a pipe takes at once where poll says that it has room
constexpr std::chrono::seconds kLastWords(1);

Fd open_to_append(const std::string& path) {
  // Not to block at a pipe that nobody has opened to read.
  return Fd(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0640));
}

bool is_probe(const HttpAccess& access) {
  return access.status == 200 &&
         (access.path == "/health" || access.path.starts_with("/health/") || access.path == "/metrics");
}

}  // namespace

std::string access_line(const HttpAccess& access, const std::string& time) {
  if (is_probe(access)) return "";
  Node node = Node::map({{"time", time},
                         {"id", access.id},
                         {"peer", access.peer},
                         {"method", access.method},
                         {"path", access.path},
                         {"status", access.status},
                         {"bytes", access.sent.count()},
                         {"total_s", access.time.count()}});
  if (access.record != nullptr) {
    Node parts = Node::map();
    for (const HttpRecord::Part& part : access.record->parts())
      parts.set(part.name, std::chrono::duration<double>(part.time).count());
    node.set("parts_s", std::move(parts));
    std::vector<Node> prompts;
    for (Node::Entry& entry : access.record->notes()) {
      if (entry.key == "prompt") {
        prompts.push_back(std::move(entry.value));
      } else {
        node.set(entry.key, std::move(entry.value));
      }
    }
    if (!prompts.empty()) node.set("prompts", Node::sequence(std::move(prompts)));
    if (const std::int64_t tokens = access.record->counted(kAnswerTokens); tokens > 0) node.set(kAnswerTokens, tokens);
    if (const std::optional<Seconds> first = access.record->marked(kFirstToken))
      node.set("first_token_s", first->count());
  }
  if (access.gone) node.set("gone", true);
  if (!access.failure.empty()) node.set("failure", access.failure);
  return to_json(node);
}

Result<std::unique_ptr<AccessLog>> AccessLog::open(const std::string& path, Clock& clock) {
  Fd fd;
  if (path != "-") {
    fd = open_to_append(path);
    if (fd.get() < 0) return os_error(errno, "open the access log", path);
  }
  return std::unique_ptr<AccessLog>(new AccessLog(path, std::move(fd), clock));
}

AccessLog::AccessLog(std::string path, Fd fd, Clock& clock)
    : path_(std::move(path)), fd_(std::move(fd)), clock_(clock), thread_([this] { run(); }) {}

AccessLog::~AccessLog() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    until_ = steady_clock::now() + kLastWords;
  }
  changed_.notify_all();
  thread_.join();
}

void AccessLog::add(const HttpAccess& access) {
  std::string line = access_line(access, clock_.timestamp());
  if (line.empty()) return;
  line += '\n';
  {
    const std::lock_guard lock(mutex_);
    if (bytes_ + line.size() > kMostHeld) {
      ++lost_;
      return;
    }
    bytes_ += line.size();
    lines_.push_back(std::move(line));
  }
  changed_.notify_all();
}

std::int64_t AccessLog::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

std::string AccessLog::metrics(const std::string& model) const {
  return fmt::format(
      "# HELP systole:access_log_lost_total Lines that the access log could not take, as of a full disk.\n"
      "# TYPE systole:access_log_lost_total counter\nsystole:access_log_lost_total{{model_name={}}} {}\n",
      to_json(Node(model)), lost());
}

// Another file of the name, if this one has been renamed or removed. If none can be opened, this one goes on.
void AccessLog::follow_file() {
  struct stat named {
  }, held{};
  if (::stat(path_.c_str(), &named) == 0 && ::fstat(fd_.get(), &held) == 0 && named.st_ino == held.st_ino &&
      named.st_dev == held.st_dev)
    return;
  Fd fresh = open_to_append(path_);
  if (fresh.get() < 0) return;
  fd_ = std::move(fresh);
  is_torn_ = false;
}

// False: it is time to end, and still there is none.
bool AccessLog::wait_for_room() const {
  while (true) {
    bool is_late = false;
    {
      const std::lock_guard lock(mutex_);
      is_late = ends_ && steady_clock::now() >= until_;
    }
    pollfd room{fd_.get() < 0 ? STDOUT_FILENO : fd_.get(), POLLOUT, 0};
    if (::poll(&room, 1, is_late ? 0 : 100) > 0) return true;
    if (is_late) return false;
  }
}

// False: it was not taken, or not whole.
bool AccessLog::write(std::string_view line) {
  const bool is_file = fd_.get() >= 0;
  std::string repaired;
  if (is_torn_) line = repaired = "\n" + std::string(line);  // what was left of a line that was not taken whole
  bool begun = false;
  while (!line.empty()) {
    if (!wait_for_room()) break;
    const std::size_t some = is_file ? line.size() : std::min(line.size(), kPipePiece);
    const ssize_t taken = ::write(is_file ? fd_.get() : STDOUT_FILENO, line.data(), some);
    if (taken < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (taken <= 0) break;
    begun = true;
    line.remove_prefix(static_cast<std::size_t>(taken));
  }
  is_torn_ = line.empty() ? false : is_torn_ || begun;
  return line.empty();
}

void AccessLog::run() {
  block_sigpipe();
  std::deque<std::string> lines;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return ends_ || !lines_.empty(); });
      if (lines_.empty()) return;
      lines.swap(lines_);
      bytes_ = 0;
    }
    if (fd_.get() >= 0) follow_file();
    std::int64_t lost = 0;
    for (const std::string& line : lines) lost += write(line) ? 0 : 1;
    lines.clear();
    const std::lock_guard lock(mutex_);
    lost_ += lost;
  }
}

}  // namespace systole
