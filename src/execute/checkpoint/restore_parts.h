#pragma once
// Restoring the shards of one rank: each byte it needs is read once, chunk by chunk, by a few threads. A chunk that is
// needed whole is verified by its hash during the read; of other chunks only the needed part is read (read_piece.h),
// and their length was checked when the checkpoint was opened. So N ranks together read what they hold, and a rank that
// holds everything (a run on one device) verifies everything without a second read.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "execute/checkpoint/restore.h"

namespace systole::checkpoint {

// The destination of a box of a tensor.
struct RestoreDestination {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;  // shape of the whole logical tensor
  Box box;      // the part that is read
  std::span<std::byte> into;
  std::optional<Box> held = {};  // the box that `into` fills, if larger than `box`; the rest is not written
};

struct RestoreReport {
  Bytes read;                      // from chunk files
  std::int64_t chunks_partly = 0;  // chunks of which only a part was needed
};

// Errors: as Checkpoint::read, and corrupt if a chunk does not match its hash; then the destinations' contents are
// undefined.
Result<RestoreReport> restore_parts(const Checkpoint& from, std::span<const RestoreDestination> destinations,
                                    int threads);

// The newest checkpoint that `take` can restore; skips damaged ones. As open_newest, but checks only lengths first and
// leaves the reading to `take`. An error of `take` other than corrupt, io or not_found ends the search. For a process
// that restores alone: ranks that restore together must take the same step, so one of them chooses it (open_newest, or
// find_damage by shares) and all open_step that one.
Result<Restored> restore_newest(const Folder& folder, const std::function<Status(const Checkpoint&)>& take);

}  // namespace systole::checkpoint
