#include "execute/comm/peer_watch.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <iterator>

namespace systole {
namespace {

// 'T': stopped, 'Z': ended; 0: unknown.
char process_state(std::int32_t pid) {
  std::ifstream stat(fmt::format("/proc/{}/stat", pid));
  const std::string text((std::istreambuf_iterator<char>(stat)), {});
  const std::size_t end = text.rfind(')');  // of the command's name
  return end == std::string::npos || end + 2 >= text.size() ? '\0' : text[end + 2];
}

}  // namespace

PeerWatch::PeerWatch(std::shared_ptr<Segment> segment, std::int32_t rank)
    : segment_(std::move(segment)), rank_(rank), processes_(static_cast<std::size_t>(segment_->num_ranks())) {}

std::optional<std::string> PeerWatch::gone(std::int32_t peer) {
  const RankBlock& block = segment_->rank(peer);
  const std::uint32_t state = block.state.load();
  if (state == RankBlock::left) return "it has left";
  if (state == RankBlock::present && ended(peer)) return fmt::format("its process {} has ended", block.pid.load());
  return {};
}

bool PeerWatch::ended(std::int32_t peer) {
  const std::int32_t pid = segment_->rank(peer).pid.load();
  if (segment_->private_words() || pid <= 0) return false;
  Fd& process = processes_[static_cast<std::size_t>(peer)];
  if (process.get() < 0) process = Fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (process.get() < 0) return errno == ESRCH;
  pollfd look{process.get(), POLLIN, 0};
  return poll(&look, 1, 0) > 0;
}

std::int32_t PeerWatch::cause_behind(std::int32_t peer) const {
  for (std::int32_t links = 0; links < segment_->num_ranks(); ++links) {
    const RankBlock& block = segment_->rank(peer);
    const std::int32_t next = block.waits_for.load();
    if (block.state.load() != RankBlock::present || next < 0 || next >= segment_->num_ranks() || next == rank_) break;
    peer = next;
  }
  return peer;
}

std::string PeerWatch::doing(std::int32_t peer) const {
  const RankBlock& block = segment_->rank(peer);
  if (block.state.load() == RankBlock::absent) return "it never came";
  if (segment_->private_words()) return "it is elsewhere";
  const std::int32_t pid = block.pid.load();
  const char state = process_state(pid);
  const bool stopped = state == 'T' || state == 't';
  return fmt::format("its process {} is {}", pid, stopped ? "stopped" : "alive, and elsewhere");
}

}  // namespace systole
