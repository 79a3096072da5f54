#include "operate/render/kubernetes/pod.h"
#include "operate/render/quote.h"

namespace systole {
namespace {

using Kind = KubernetesSpec::Kind;

// Which of the run's nodes this is, as a word of sh.
std::string node_index(const KubernetesJob& k) { return k.job.slices > 1 ? "$node" : "$JOB_COMPLETION_INDEX"; }

}  // namespace

std::string leader_of(const KubernetesJob& k) {
  const std::string& run = k.job.run;
  return k.kind == Kind::jobset ? fmt::format("{0}-{1}-0-0.{0}", run, replicated_name(k.job))
                                : fmt::format("{0}-0.{0}", run);
}

Meeting meeting_of(const KubernetesJob& k, const PodParts& parts) {
  const ClusterJob& job = k.job;
  Meeting meeting{.files = "/systole/files", .folder = shell_word(job.folder + "/" + job.run)};
  // What a workload names without '/' lies in the folder of runs, which all nodes see.
  if (k.workload().command.empty()) meeting.before = fmt::format("cd {}\n", shell_word(job.folder));
  if (job.slices > 1) {
    meeting.before += fmt::format("node=$((MEGASCALE_SLICE_ID * {} + JOB_COMPLETION_INDEX))\n", job.hosts_per_slice());
  } else if (!k.by_agent() && (k.kind == Kind::job || k.kind == Kind::jobset)) {
    meeting.before += "node=$JOB_COMPLETION_INDEX\n";
  }
  meeting.before += parts.before;
  if (!k.by_agent()) {
    meeting.start = start_by_others(k);
    return meeting;
  }
  // The collector is elsewhere in the cluster; the run's network policy keeps others out.
  if (const auto& port = k.workload().kubernetes.metrics_port; port && k.workload().command.empty())
    meeting.metrics = fmt::format("0.0.0.0:{}", *port);
  if (job.alone()) return meeting;
  // The first leads; it listens at its own address, which it has before the Service has a name for it.
  const std::string node = node_index(k);
  meeting.before += fmt::format("if [ \"{}\" = 0 ]; then leader=$POD_IP; else leader={}; fi\n", node, leader_of(k));
  meeting.leader = "$leader";
  meeting.port = std::to_string(kRendezvousPort);
  meeting.node = "node-" + node;
  meeting.host = "$POD_IP";
  meeting.token_file = "/systole/token/token";
  return meeting;
}

}  // namespace systole
