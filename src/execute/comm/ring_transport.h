#pragma once
// The transport over a Segment: a message is copied into the ring of its pair, and consumed directly from there. Ranks
// are processes of one host (shm) or threads of one process (loopback); nothing else differs.
//
// An error names a needed peer at once if it has ended or left. A peer that is present but does not move for the length
// of the patience is named with what it does; if it waits for another rank itself, that rank is named (peer_watch.h).

#include <memory>
#include <optional>
#include <vector>

#include "execute/comm/segment.h"
#include "execute/runtime/transport.h"

namespace systole {

struct RingOptions {
  Seconds patience{60};
  // How long to poll before sleeping, yielding the core each time. So short waits, also for a rank on the same core,
  // need no sleep and no wake-up.
  Seconds spin{50e-6};
};

// Joins the segment as `rank`.
// Errors: invalid if the segment has no such rank; busy if that rank has joined before: a rank joins once.
Result<std::unique_ptr<Transport>> ring_transport(std::shared_ptr<Segment> segment, std::int32_t rank,
                                                  const RingOptions& options = {});

// One transport per rank, for threads of this process. Rings of the default size, or of `ring_bytes`, a power of two.
// Errors: io.
Result<std::vector<std::unique_ptr<Transport>>> loopback(std::int32_t num_ranks, const RingOptions& options = {},
                                                         std::optional<std::int64_t> ring_bytes = {});

}  // namespace systole
