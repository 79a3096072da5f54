#include "operate/cluster/cluster.h"

#include <algorithm>
#include <array>

#include "ground/base/nearest.h"
#include "operate/cluster/slurm.h"

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

Result<std::unique_ptr<Cluster>> open_cluster(std::string_view target) {
  if (target == "slurm") return open_slurm();
  if (target == "kubernetes" || target == "ssh")
    return error(ErrorKind::unsupported, "{}: nothing is submitted there yet", target)
        .hinted(fmt::format("systole render WORKLOAD --on {} writes the files, and tells how to start them", target));
  return error(ErrorKind::invalid, "'{}' is nothing that runs are submitted to", target)
      .hinted(nearest_hint(target, std::vector<std::string>{"slurm"}));
}

}  // namespace systole
