#pragma once
// The transport over a Segment: each message is copied into the ring of its pair and taken straight out of it. Ranks
// are processes of one host (shm) or threads of one process (loopback); nothing else differs.
//
// A peer that is needed and has ended or left is named at once; one that is there and does not move for the length of
// the patience is named with what it does, and if it itself waits for another rank, that one is (peer_watch.h).

#include <memory>
#include <optional>
#include <vector>

#include "execute/comm/segment.h"
#include "execute/runtime/transport.h"

namespace systole {

struct RingOptions {
  Seconds patience{60};
  // How long to look again and again before sleeping, giving the core away each time: short waits, among them those for
  // a rank on the same core, cost no sleep and no waking.
  Seconds spin{50e-6};
};

// Takes the place of `rank` in the segment. Errors: invalid when the segment has no such rank; busy when somebody has
// that place, or had it: a rank comes once.
Result<std::unique_ptr<Transport>> ring_transport(std::shared_ptr<Segment> segment, std::int32_t rank,
                                                  const RingOptions& options = {});

// One transport for each of the threads that are to be ranks; rank i is the i-th. Rings of the usual size, or of
// `ring_bytes`, a power of two. Errors: io.
Result<std::vector<std::unique_ptr<Transport>>> loopback(std::int32_t num_ranks, const RingOptions& options = {},
                                                         std::optional<std::int64_t> ring_bytes = {});

}  // namespace systole
