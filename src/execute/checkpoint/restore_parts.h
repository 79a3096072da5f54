#pragma once
// Restoring what one rank holds: every byte that it needs is read once, chunk by chunk, by a few threads. A chunk that
// is needed whole is verified by its hash in passing; of others only what is needed is read (read_piece.h), and their
// length was looked at when the checkpoint was opened. So N ranks together read what they hold, and a rank that holds
// all (a run of one device) verifies all of it for no second reading.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "execute/checkpoint/restore.h"

namespace systole::checkpoint {

// Where a box of a tensor goes.
struct RestoreTarget {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;  // of the whole logical tensor
  Box box;      // what is read
  std::span<std::byte> into;
  std::optional<Box> held = {};  // the box that `into` fills, when that is more than `box`: the rest is left alone
};

struct RestoreReport {
  Bytes read;                        // from chunk files
  std::int64_t chunks_verified = 0;  // by their hash
  std::int64_t chunks_partly = 0;    // of which only a part was needed
};

// Errors: as Checkpoint::read, and corrupt when a chunk does not hash to its name; then the targets hold anything.
Result<RestoreReport> restore_parts(const Checkpoint& from, std::span<const RestoreTarget> targets, int threads);

// The newest checkpoint that `take` can restore, walking back over those that are damaged: as open_newest, but looks
// only at lengths first and leaves the reading to `take`. What `take` says with another kind than corrupt, io or
// not_found ends it. For a process that restores alone: ranks that restore together must take the same step, so one of
// them chooses it (open_newest, or find_damage by shares) and all open_step that one.
Result<Restored> restore_newest(const Folder& folder, const std::function<Status(const Checkpoint&)>& take);

}  // namespace systole::checkpoint
