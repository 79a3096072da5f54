#include "operate/cluster/run_status.h"

#include <algorithm>
#include <map>

#include "ground/base/files.h"

namespace systole {
namespace {

bool is_job_of(const std::string& id, const std::string& record_id) {
  return !record_id.empty() && job_of(id) == record_id;
}

// Adds to the target's jobs what their intervals say.
std::vector<JobStatus> with_ledger(const Record& record, std::vector<JobStatus> jobs,
                                   const std::vector<AllocationInterval>& intervals, bool asked_to_stop) {
  std::map<std::string, const AllocationInterval*> last;
  for (const AllocationInterval& interval : intervals)
    if (is_job_of(interval.id, record.id)) last[interval.id] = &interval;
  for (JobStatus& job : jobs) {
    const auto interval = last.find(job.id);
    if (job.sure) {
      if (interval != last.end()) last.erase(interval);
      if (asked_to_stop && job.state == RunState::running) job.state = RunState::saving;
      continue;
    }
    if (job.state == RunState::running && asked_to_stop) job.state = RunState::saving;
    const bool begun = interval != last.end() && interval->second->restart >= job.restarts;
    if (job.state == RunState::running && !begun) job.state = RunState::starting;
    if (interval == last.end()) continue;
    if (is_over(job.state) && interval->second->code && interval->second->restart == job.restarts)
      end_with(job, *interval->second->code, asked_to_stop);
    last.erase(interval);
  }
  for (const auto& [id, interval] : last) {  // the target has forgotten these
    JobStatus job{.id = id, .run = record.run, .submission = record.submission, .restarts = interval->restart};
    job.began_at = interval->began_at;
    job.ended_at = interval->ended_at.value_or(0);
    if (interval->code) {
      end_with(job, *interval->code, asked_to_stop);
    } else {
      job.reason = fmt::format("{} no longer knows it, and it recorded no end", record.target);
    }
    jobs.push_back(std::move(job));
  }
  if (jobs.empty() && asked_to_stop && !record.id.empty())
    jobs.push_back({.id = record.id, .run = record.run, .submission = record.submission, .state = RunState::stopped});
  std::ranges::sort(jobs, [](const JobStatus& a, const JobStatus& b) {
    return a.id.size() != b.id.size() ? a.id.size() < b.id.size() : a.id < b.id;
  });
  return jobs;
}

// The run's ledger; an unreadable one counts as empty.
std::vector<AllocationInterval> intervals_of(const Record& record) {
  const Result<std::string> text = ledger_text(ledger_of(record));
  return text.ok() ? read_ledger(*text) : std::vector<AllocationInterval>();
}

// The allocations, from the ledger, from what was reported earlier, which the target may have forgotten, and from jobs.
RunStatus allocated(const Record& record, const std::string& told_before, std::span<const JobStatus> jobs) {
  const std::vector<AllocationInterval> ledger = intervals_of(record);
  RunStatus status;
  status.allocations = ledger;
  merge_intervals(status.allocations, read_ledger(told_before));
  std::ranges::stable_sort(status.allocations, {}, &AllocationInterval::began_at);
  merge_allocations(status.allocations, jobs);
  status.told = lines_beyond(ledger, status.allocations);
  return status;
}

RunStatus status_of(const Record& record, std::vector<JobStatus> jobs, const std::string& told_before) {
  RunStatus status = allocated(record, told_before, jobs);
  // Checked after the ledger is read: an end in the ledger may follow a stop request.
  const bool asked_to_stop = path_exists(record.place + "/stop");
  status.jobs = with_ledger(record, std::move(jobs), status.allocations, asked_to_stop);
  end_by(status.allocations, status.jobs);
  return status;
}

using Jobs = std::map<std::string, std::vector<JobStatus>>;  // by submission id
Result<Jobs> jobs_of(ClusterClient& cluster, std::span<const Record> records) {
  Jobs jobs;
  for (JobStatus& job : TRY(cluster.query(records))) jobs[job.submission].push_back(std::move(job));
  return jobs;
}

}  // namespace

RunSummary summarize(const Record& record, const RunStatus& status, std::int64_t now) {
  const JobStatus all = status.overall();
  RunSummary summary{.run = record.run, .target = record.target, .id = record.id, .state = all.state};
  summary.problem = all.reason;
  summary.since = record.submitted_at;
  if (record.usd_per_hour) summary.cost = *record.usd_per_hour * Seconds(allocated_seconds(status.allocations, now));
  summary.budget = record.budget;
  summary.exit_code = all.exit_code;
  return summary;
}

Result<RunStatus> query(ClusterClient& cluster, const Record& record, const std::string& told_before) {
  return std::move(TRY(query(cluster, {&record, 1}, {&told_before, 1})).front());
}

Result<std::vector<RunStatus>> query(ClusterClient& cluster, std::span<const Record> records,
                                     std::span<const std::string> told_before) {
  Jobs jobs = TRY(jobs_of(cluster, records));
  std::vector<RunStatus> statuses;
  for (std::size_t i = 0; i < records.size(); ++i)
    statuses.push_back(status_of(records[i], std::move(jobs[records[i].submission]),
                                 told_before.empty() ? std::string() : told_before[i]));
  return statuses;
}

RunStatus ledger_status(const Record& record, const std::string& told_before) {
  return allocated(record, told_before, {});
}

Result<RunStatus> settle(ClusterClient& cluster, const Record& record, const std::string& told_before) {
  RunStatus status = TRY(query(cluster, record, told_before));
  if (is_over(status.overall().state) && TRY(cluster.record_end(record)))
    status = TRY(query(cluster, record, told_before));
  if (!status.told.empty() && !record.place.empty() && path_exists(record.place)) {
    TRY(add_to_ledger(ledger_of(record), status.told));
    status.told.clear();
  }
  return status;
}

bool has_end(const RunStatus& status, const Record& record) {
  std::map<std::string, bool> ended;
  for (const AllocationInterval& interval : status.allocations)
    if (is_job_of(interval.id, record.id)) ended[interval.id] = interval.ended_at.has_value();
  return !ended.empty() && std::ranges::all_of(ended, [](const auto& job) { return job.second; });
}

}  // namespace systole
