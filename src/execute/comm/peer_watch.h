#pragma once
// The fate of the other ranks of a segment, from their processes (by pidfd, which is safe against zombies and reused
// ids) and from their words in the segment.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "execute/comm/segment.h"

namespace systole {

// Belongs to the transport of `rank`; one thread.
class PeerWatch {
 public:
  PeerWatch(std::shared_ptr<Segment> segment, std::int32_t rank);

  // Why a rank that was present will send no more: "its process 17 has ended", "it has left". Nothing if it may.
  std::optional<std::string> gone(std::int32_t peer);

  // Follows the chain of waiting ranks from `peer` to its end: the cause of the wait, not a victim.
  std::int32_t cause_behind(std::int32_t peer) const;

  // Why a rank keeps others waiting: "it never came", "its process 17 is stopped".
  std::string doing(std::int32_t peer) const;

 private:
  bool ended(std::int32_t peer);
  std::shared_ptr<Segment> segment_;
  const std::int32_t rank_;
  std::vector<Fd> processes_;  // pidfd of each rank; opened at its first check
};

}  // namespace systole
