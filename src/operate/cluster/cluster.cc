#include "operate/cluster/cluster.h"

#include <algorithm>
#include <array>

#include "ground/base/exit_code.h"
#include "ground/base/nearest.h"
#include "operate/cluster/kubernetes.h"
#include "operate/cluster/record.h"
#include "operate/cluster/slurm.h"
#include "operate/cluster/ssh.h"

namespace systole {
namespace {

// What is most worth knowing of several, first.
constexpr std::array kByUrgency = {Phase::saving, Phase::running, Phase::starting, Phase::preempted, Phase::queued,
                                   Phase::failed, Phase::unknown, Phase::stopped,  Phase::done};

}  // namespace

const char* name_of(Phase phase) {
  switch (phase) {
    case Phase::queued: return "queued";
    case Phase::starting: return "starting";
    case Phase::running: return "running";
    case Phase::saving: return "saving";
    case Phase::preempted: return "preempted";
    case Phase::failed: return "failed";
    case Phase::stopped: return "stopped";
    case Phase::done: return "done";
    case Phase::unknown: return "unknown";
  }
  return "unknown";
}

bool is_over(Phase phase) { return phase == Phase::failed || phase == Phase::stopped || phase == Phase::done; }

void end_with(Seen& job, std::int64_t code, bool asked) {
  if (code == 0) {
    job.phase = Phase::done;
    job.reason.clear();
  } else if (code == kExitOverBudget) {
    job.phase = Phase::stopped;
    job.reason = fmt::format("{}: systole resume {} --set objective.budget=DOLLARS", kBudgetUsed, job.run);
  } else if (asked || job.phase == Phase::stopped) {
    job.phase = Phase::stopped;
    job.reason = code == kExitSaved ? "saved" : fmt::format("exit code {}", code);
  } else {
    job.phase = Phase::failed;
    if (code > 128 && !job.reason.empty()) return;  // killed: the target says more of it
    job.reason = code == kExitSaved
                     ? "exit code 75: stopped with its state saved, and begun again as often as it may be"
                 : code == kExitNotSaved
                     ? "exit code 76: a rank or a node was lost, and it was begun again as often as it may be"
                 : code == kExitMissing ? "exit code 3: its machines lack something that it needs"
                                        : fmt::format("exit code {}", code);
  }
}

Seen overall(std::span<const Seen> jobs) {
  if (jobs.empty()) return {};
  if (jobs.size() == 1) return jobs[0];
  for (const Phase phase : kByUrgency) {
    const auto first = std::ranges::find(jobs, phase, &Seen::phase);
    if (first == jobs.end()) continue;
    Seen seen = *first;
    std::string counts;
    for (const Phase other : kByUrgency)
      if (const auto n = std::ranges::count(jobs, other, &Seen::phase); n > 0)
        counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", n, name_of(other));
    seen.reason = counts + (seen.reason.empty() ? "" : ": " + seen.reason);
    return seen;
  }
  return jobs[0];
}

Result<std::vector<Record>> ClusterClient::recall(const std::string&) { return std::vector<Record>(); }

std::vector<std::string> cluster_targets() { return {"slurm", "kubernetes", "ssh"}; }

Result<std::unique_ptr<ClusterClient>> open_cluster(std::string_view target, const ClusterClient::Whereabouts& where) {
  if (target == "slurm") return open_slurm();
  if (target == "kubernetes") return open_kubernetes(where);
  if (target == "ssh") return open_ssh();
  return error(ErrorKind::invalid, "'{}' is nothing that runs are submitted to", target)
      .hinted(nearest_hint(target, cluster_targets()));
}

}  // namespace systole
