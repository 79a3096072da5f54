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

// The submitted runs' files, looked at on a thread of its own while the index is read. Throws if a record's folder cannot
// be read.
class SubmittedScan {
 public:
  explicit SubmittedScan(const FollowScene& scene);
  // Once. By name.
  std::vector<RecordStamp> stamps() { return submissions_ ? stamps_.get().value() : std::vector<RecordStamp>(); }
  // REQUIRES: there are stamps.
  Submissions& submissions() { return *submissions_; }

 private:
  std::optional<Submissions> submissions_;  // nothing: none was submitted
  std::future<Result<std::vector<RecordStamp>>> stamps_;
};

// Newest first. `before`: the rows of the index, which gets the new ones. A failed write to the index is a warning; the
// next call queries again. So is a cluster that cannot be queried: its runs are stale, or unknown if never seen. Throws
// if a record cannot be read.
std::vector<SubmittedRow> submitted_rows(SubmittedScan& scan, std::vector<SubmittedRow> before, SubmittedIndex& index,
                                         const FollowScene& scene);

}  // namespace systole
