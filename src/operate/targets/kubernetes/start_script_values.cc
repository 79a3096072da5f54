#include "operate/render/quote.h"
#include "operate/targets/kubernetes/pod.h"

namespace systole {
namespace {

using Kind = KubernetesSpec::Kind;

// This node's number in the run, as a word of sh.
std::string node_index(const KubernetesJob& k) { return k.job.slices > 1 ? "$node" : "$JOB_COMPLETION_INDEX"; }

}  // namespace

std::string leader_of(const KubernetesJob& k) {
  const std::string& run = k.job.run;
  return k.kind == Kind::jobset ? fmt::format("{0}-{1}-0-0.{0}", run, replicated_name(k.job))
                                : fmt::format("{0}-0.{0}", run);
}

StartScriptValues start_script_values(const KubernetesJob& k, const PodParts& parts) {
  const ClusterJob& job = k.job;
  StartScriptValues values{.files = "/systole/files", .folder = shell_word(job.folder + "/" + job.run)};
  // Relative paths of a workload are below the folder of runs, which all nodes see.
  if (k.workload().command.empty()) values.before = fmt::format("cd {}\n", shell_word(job.folder));
  if (job.slices > 1) {
    values.before += fmt::format("node=$((MEGASCALE_SLICE_ID * {} + JOB_COMPLETION_INDEX))\n", job.hosts_per_slice());
  } else if (!k.by_agent() && (k.kind == Kind::job || k.kind == Kind::jobset)) {
    values.before += "node=$JOB_COMPLETION_INDEX\n";
  }
  values.before += parts.before;
  if (!k.by_agent()) {
    values.start = start_by_others(k);
    return values;
  }
  // The collector runs elsewhere in the cluster; the run's network policy excludes others.
  if (const auto& port = k.workload().kubernetes.metrics_port; port && k.workload().command.empty())
    values.metrics = fmt::format("0.0.0.0:{}", *port);
  if (job.alone()) return values;
  // The first node leads. It listens at its own address, which it has before the Service has its name.
  const std::string node = node_index(k);
  values.before += fmt::format("if [ \"{}\" = 0 ]; then leader=$POD_IP; else leader={}; fi\n", node, leader_of(k));
  values.leader = "$leader";
  values.port = std::to_string(kRendezvousPort);
  values.node = "node-" + node;
  values.host = "$POD_IP";
  values.token_file = "/systole/token/token";
  return values;
}

}  // namespace systole
