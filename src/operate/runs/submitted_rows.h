#pragma once
// Rows of the runs submitted from a folder of runs. Finished runs come from the index. Other runs are queried, each
// cluster once; if it cannot be queried, the row shows them as last seen.

#include <future>
#include <optional>
#include <vector>

#include "ground/base/document.h"
#include "operate/cluster/record_stamps.h"
#include "operate/observe/submitted_index.h"
#include "operate/runs/submitted_runs.h"

namespace systole {

// What the index keeps of a run that its ledger lacks (RunStatus::told); "" if it has nothing or cannot be read.
std::string told_before(const std::string& runs, const Record& record);

// {"run", "target", "id", "state", "reason", "folder", ..., "node_seconds", "dollars", "budget", "seen_at", "jobs":
// [...]}; "seen_at" is null unless the cluster cannot be queried now.
Node to_node(const SubmittedRow& row);
Node run_node(const Record& record, const RunStatus& status, Clock& clock);

struct SubmittedFiles {
  std::optional<Submissions> submissions;  // nothing: none was submitted
  std::vector<RecordStamp> stamps;         // by name
};
// Looks at the files of the submitted runs on a thread of its own, for the time in which the index is read. Errors: as
// Submissions::open_if_there and record_stamps.
std::future<Result<SubmittedFiles>> submitted_files(std::string folder);

// Newest first. `before`: the rows of the index, which gets the new ones. A failed write to the index is a warning; the
// next call queries again. So is a cluster that cannot be queried: its runs are stale, or unknown if never seen. Throws
// if a record cannot be read.
std::vector<SubmittedRow> submitted_rows(SubmittedFiles files, std::vector<SubmittedRow> before, SubmittedIndex& index,
                                         const FollowScene& scene);

}  // namespace systole
