#pragma once
// Which checkpoints stay, and how the rest goes: mark from all manifests, remove the manifests not kept, make that
// durable, then remove every chunk that no remaining manifest names. A crash anywhere leaves at worst chunks that the
// next sweep removes.
//
// A manifest that cannot be read is never removed, and the chunks that its text still names are kept: it may be of a
// newer version, or worth saving by hand. When the system refuses to read one, nothing at all is removed.

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "execute/checkpoint/folder.h"
#include "ground/base/units.h"

namespace systole::checkpoint {

// The union of these, and the blessed ones.
struct Retention {
  int last = 2;            // the newest that are whole; 0 keeps all
  std::int64_t every = 0;  // steps divisible by this; 0: none
  bool best = false;       // the one with the lowest metric (the newest of equals)
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
  bool postponed = false;              // a manifest could not be read from the store: nothing was removed
};

// Asked before each file that goes; empty: it is. Its error ends the sweep.
using StillOurs = std::function<Status()>;

// Parts of saves that are over (group.h) go too, whoever wrote them. REQUIRES: nobody writes chunks into the folder
// meanwhile (rank 0 sweeps after its commit, and the other writers wait for that).
// Errors: io, and that of still_ours. What is not removed now is removed by the next sweep.
Result<SweepReport> sweep(const Folder& folder, const Retention& retention, const StillOurs& still_ours = {});

// Marks a checkpoint so that retention never removes it, or takes the mark away. Errors: not_found, io.
Status bless(const Folder& folder, std::int64_t step);
Status unbless(const Folder& folder, std::int64_t step);

// Removes the checkpoints after `step`, for a run that goes on from there on another path; durable on return. Their
// chunks go at the next sweep. Blessed ones stay and make it an error: exists.
Status remove_after(const Folder& folder, std::int64_t step);

// The space that the kept checkpoints and one in flight will take, against the space there is (free, or held by
// checkpoints that will go). `saves` is how many saves the run will make (for `every`), 0 when unknown: then those
// kept by `every` count once.
struct SpaceNeed {
  std::int64_t checkpoints = 0;  // kept at once, with the one in flight
  Bytes needed, available;
};
// `steps_between`: steps from one save to the next. Errors: does_not_fit with both numbers and what to change; io.
Result<SpaceNeed> check_space(const Folder& folder, Bytes per_save, const Retention& retention,
                              std::int64_t steps_between, std::int64_t saves);

}  // namespace systole::checkpoint
