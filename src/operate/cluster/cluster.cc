#include "operate/cluster/cluster.h"

#include <algorithm>
#include <array>

#include "ground/base/exit_code.h"
#include "operate/cluster/record.h"

namespace systole {
namespace {

// The most important state first.
constexpr std::array kByUrgency = {RunState::saving,  RunState::running, RunState::starting, RunState::preempted,
                                   RunState::queued,  RunState::failed,  RunState::killed,   RunState::diverged,
                                   RunState::damaged, RunState::unknown, RunState::stopped,  RunState::budget_used,
                                   RunState::finished};

}  // namespace

void end_with(JobStatus& job, std::int64_t code, bool asked) {
  job.state = state_of_exit(code, asked || job.state == RunState::stopped);
  job.exit_code = code;
  if (job.state == RunState::finished) {
    job.reason.clear();
  } else if (job.state == RunState::budget_used) {
    job.reason = fmt::format("its budget is used: systole resume {} --set objective.budget=DOLLARS", job.run);
  } else if (job.state == RunState::stopped) {
    job.reason = code == kExitSaved ? "saved" : fmt::format("exit code {}", code);
  } else {
    if (code > 128 && !job.reason.empty()) return;  // killed: the target's reason says more
    job.reason = code == kExitSaved
                     ? "exit code 75: stopped with its state saved, and begun again as often as it may be"
                 : code == kExitNotSaved
                     ? "exit code 76: a rank or a node was lost, and it was begun again as often as it may be"
                 : code == kExitMissing ? "exit code 3: its machines lack something that it needs"
                                        : fmt::format("exit code {}", code);
  }
}

JobStatus overall(std::span<const JobStatus> jobs) {
  if (jobs.empty()) return {};
  if (jobs.size() == 1) return jobs[0];
  for (const RunState state : kByUrgency) {
    const auto first = std::ranges::find(jobs, state, &JobStatus::state);
    if (first == jobs.end()) continue;
    JobStatus status = *first;
    std::string counts;
    for (const RunState other : kByUrgency)
      if (const auto n = std::ranges::count(jobs, other, &JobStatus::state); n > 0)
        counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", n, name_of(other));
    status.reason = counts + (status.reason.empty() ? "" : ": " + status.reason);
    return status;
  }
  return jobs[0];
}

Result<std::vector<Record>> ClusterClient::recall(const std::string&) { return std::vector<Record>(); }

}  // namespace systole
