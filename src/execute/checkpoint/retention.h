#pragma once
// Which checkpoints stay, and how the others are removed: mark from all manifests, remove the manifests not kept, make
// that durable, then remove every chunk that no remaining manifest names. A crash at any point leaves at worst chunks
// that the next sweep removes.
//
// An unreadable manifest is never removed, and the chunks that its text still names are kept: it may be of a newer
// version, or worth saving by hand. If the system refuses to read a manifest, nothing is removed but incomplete writes
// of manifests.

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "execute/checkpoint/folder.h"
#include "ground/base/units.h"

namespace systole::checkpoint {

// Keeps the union of these and the blessed checkpoints.
struct Retention {
  int last = 2;            // the newest intact ones; 0 keeps all
  std::int64_t every = 0;  // steps divisible by this; 0: none
  bool best = false;       // the one with the lowest metric (the newest among equals)
};

struct Unreadable {
  std::string path;
  Error reason;
};

struct SweepReport {
  std::vector<std::int64_t> kept, removed;  // steps, ascending
  std::int64_t chunks_removed = 0;
  Bytes freed;                         // of chunks and leftovers
  std::vector<Unreadable> unreadable;  // kept, with their chunks
  bool postponed = false;              // what is there could not be learnt from the store: no object was removed
};

// Called before each removal; empty: always ours. Its error ends the sweep.
using StillOurs = std::function<Status()>;

// Also removes the parts of finished saves (group.h) of any writer. REQUIRES: nobody writes chunks into the folder
// meanwhile (rank 0 sweeps after its commit, and the other writers wait for that).
// `there`: a step that is saved. A list of checkpoints without it is an old one, by which nothing is removed.
// Errors: io, and that of still_ours. The next sweep removes what this one could not.
Result<SweepReport> sweep(const Folder& folder, const Retention& retention, const StillOurs& still_ours = {},
                          std::optional<std::int64_t> there = {});

// Marks a checkpoint so that retention never removes it, or removes the mark. A mark is an object of its own, so
// concurrent marks of different checkpoints are all kept. Errors: not_found, io.
Status bless(const Folder& folder, std::int64_t step);
Status unbless(const Folder& folder, std::int64_t step);

// The space for the kept checkpoints and one in flight, and the space available (free, or held by checkpoints that will
// be removed).
struct SpaceNeed {
  std::int64_t checkpoints = 0;  // kept at once, including the one in flight
  Bytes needed, available;
};
// `steps_between`: steps from one save to the next; `steps`: of the whole training. 0: unknown, then those that `every`
// keeps count once. `shown`: the folder's name, for people. Errors: does_not_fit with both numbers and what to change;
// io.
Result<SpaceNeed> check_space(const Folder& folder, Bytes per_save, const Retention& retention,
                              std::int64_t steps_between, std::int64_t steps, std::string_view shown);

}  // namespace systole::checkpoint
