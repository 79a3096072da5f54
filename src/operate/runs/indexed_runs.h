#pragma once
// The current list of runs in a folder, from its index (observe/index.h).

#include <optional>
#include <string>
#include <vector>

#include "operate/observe/index.h"
#include "operate/observe/submitted_index.h"
#include "operate/runs/submitted_runs.h"

namespace systole {

struct IndexedRuns {
  std::vector<RunRow> runs;
  SubmittedIndex submitted;
  std::vector<SubmittedRow> before;  // submitted runs as last seen
  std::vector<Error> refused;        // unreadable runs
};

struct IndexRequest {
  bool rebuild = false;    // rebuilds from the folders; submitted runs that are over are queried again
  bool with_jobs = false;  // includes the jobs of submitted runs
};

// The root of `store` is scene.folder. The index is derived data. An unreadable one is rebuilt. If it cannot be
// written, that is a warning, and an index in memory gives the same runs, but without what clusters reported before.
// Throws io, busy.
IndexedRuns indexed_runs(Store& store, const IndexRequest& ask, const FollowScene& scene);

// Why a damaged run in that folder of runs is unreadable. Its row has only the state.
std::optional<Error> damage_of(const RunRow& row, const std::string& folder);

}  // namespace systole
