#pragma once
// What became of the other ranks of a segment: by their processes (pidfd: zombies and reused numbers do not deceive it)
// and by what they say of themselves there.

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

  // Why a rank that came will say no more: "its process 17 has ended", "it has left". Nothing: it may.
  std::optional<std::string> gone(std::int32_t peer);

  // Of ranks that wait for each other, beginning with `peer`, the last: the cause, and not its victims.
  std::int32_t cause_behind(std::int32_t peer) const;

  // What a rank does that keeps others waiting: "it never came", "its process 17 is stopped".
  std::string doing(std::int32_t peer) const;

 private:
  bool ended(std::int32_t peer);
  std::shared_ptr<Segment> segment_;
  const std::int32_t rank_;
  std::vector<Fd> processes_;  // pidfd of each rank; opened when it is first looked for
};

}  // namespace systole
