#pragma once
// The allocation ledger: when each job of a run held its machines, in lines that the job itself appends:
//
//   began ID RESTART SECONDS NODES      ended ID RESTART SECONDS CODE      (seconds of Unix time)
//
// A killed job writes no `ended`; its next start, or the target, gives the end. If jobs do not see the folder of the
// run's record, the target reports their times, and settle() (run_status.h) writes them down. Job ids are the target's;
// an array has a job ID and tasks ID_INDEX.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/result.h"

namespace systole {

struct JobStatus;

// "3" of job 3, and of its task "3_1".
std::string_view job_of(std::string_view id);

struct AllocationInterval {  // one job from begin to end
  std::string id;
  std::int64_t restart = 0, began_at = 0, nodes = 0;
  std::optional<std::int64_t> ended_at, code;
  bool operator==(const AllocationInterval&) const = default;
};
// The last one of that job or task; null: none.
AllocationInterval* last_of(std::vector<AllocationInterval>& intervals, std::string_view id);
// Skips other lines: the last one may be torn.
std::vector<AllocationInterval> read_ledger(std::string_view text);

// Adds the intervals and ends in `told` that `known` lacks. Intervals with the same job and begin second match; several
// such match in order. A new interval whose number is taken gets the next number.
void merge_intervals(std::vector<AllocationInterval>& known, std::span<const AllocationInterval> told);
// As merge_intervals, for what targets report of jobs (JobStatus::allocations), in order. For a job with
// JobStatus::sure, an interval that began before the last known one is old and less complete, and a finished job ends
// the last one.
void merge_allocations(std::vector<AllocationInterval>& known, std::span<const JobStatus> jobs);

// The intervals of `all` that `known` lacks or has without an end, each complete, as lines of a ledger.
std::string lines_beyond(const std::vector<AllocationInterval>& known, std::span<const AllocationInterval> all);

// The ledger, followed by those of its lines that are only in `told`.
std::string with_lines_of(std::string ledger, std::string_view told);

// The text of the ledger file; "" if there is none yet. Errors: io.
Result<std::string> ledger_text(const std::string& path);
// Appends the lines that it lacks. Errors: io, no_space.
Status add_to_ledger(const std::string& path, std::string_view lines);

// If a finished job's last interval has no end, sets it to the one its target reports.
void end_by(std::vector<AllocationInterval>& intervals, std::span<const JobStatus> jobs);
// Whether an interval has neither an end nor a successor, so it still counts.
bool goes_on(const std::vector<AllocationInterval>& intervals);

// Seconds × nodes up to `now`. An interval without an end lasts to the next one of its job, or of a job that the run
// was resubmitted as; the last one lasts to `now`.
double node_seconds(const std::vector<AllocationInterval>& intervals, std::int64_t now);
// As node_seconds, counting all nodes as one: to multiply by a price for all machines together.
double allocated_seconds(const std::vector<AllocationInterval>& intervals, std::int64_t now);

}  // namespace systole
