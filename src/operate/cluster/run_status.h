#pragma once
// The status of a run, from its target and its own ledger together. query() only reads: it changes neither the cluster,
// nor its machines, nor a file. settle() also records what may be forgotten later; commands that change or follow a run
// use it.

#include <span>
#include <string>
#include <vector>

#include "describe/spec/run_summary.h"
#include "operate/cluster/allocation_ledger.h"
#include "operate/cluster/cluster.h"
#include "operate/cluster/record.h"

namespace systole {

struct RunStatus {
  std::vector<JobStatus> jobs;
  std::vector<AllocationInterval> allocations;  // from the ledger, and from the target where it knows more
  std::string told;                             // lines of those that its ledger lacks or has without an end

  JobStatus overall() const { return systole::overall(jobs); }
  // With all jobs replaced by the overall one.
  RunStatus as_one() const { return {{overall()}, allocations, told}; }
};

// The row of a run (describe/spec/run_summary.h): its jobs combined, and its machines' cost up to `now`, in seconds of
// Unix time.
RunSummary summarize(const Record& record, const RunStatus& status, std::int64_t now);

// `told_before`: RunStatus::told of an earlier query, if it was kept: the target may have forgotten it. Errors: io, the
// target cannot be queried.
Result<RunStatus> query(ClusterClient& cluster, const Record& record, const std::string& told_before = "");
// For many runs with a single query of the target. REQUIRES: told_before has one for each record, or is empty.
Result<std::vector<RunStatus>> query(ClusterClient& cluster, std::span<const Record> records,
                                     std::span<const std::string> told_before = {});
// The status from the ledger alone, if the target cannot be queried.
RunStatus ledger_status(const Record& record, const std::string& told_before);

// As query, and records: on the target, if it keeps the run, how it ended after a stop; in the ledger, what the target
// reports beyond it, now and before. Errors: io, no_space.
Result<RunStatus> settle(ClusterClient& cluster, const Record& record, const std::string& told_before = "");

// Whether a job of the record began, by its ledger, and every begun one has ended.
bool has_end(const RunStatus& status, const Record& record);

}  // namespace systole
