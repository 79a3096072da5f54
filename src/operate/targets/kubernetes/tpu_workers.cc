// Discovery between the hosts of a TPU slice, and between slices (multislice). On GKE a webhook sets the same
// variables, and overrides these.
#include "operate/targets/kubernetes/pod.h"

namespace systole {

void add_tpu_workers(const KubernetesJob& k, PodParts& parts) {
  const ClusterJob& job = k.job;
  if (!job.tpu()) return;
  const std::int64_t hosts = job.hosts_per_slice();
  if (job.slices > 1) {
    parts.set_env("MEGASCALE_NUM_SLICES", std::to_string(job.slices));
    parts.set_env_from("MEGASCALE_SLICE_ID", "metadata.labels['jobset.sigs.k8s.io/job-index']");
    parts.set_env_from("MEGASCALE_COORDINATOR_ADDRESS", "metadata.annotations['jobset.sigs.k8s.io/coordinator']");
  }
  if (hosts == 1) return;
  const std::string slice = job.slices > 1 ? "$MEGASCALE_SLICE_ID" : "0";
  const std::string pod = k.kind == KubernetesSpec::Kind::jobset
                              ? fmt::format("{}-{}-{}-$host.{}", job.run, replicated_name(job), slice, job.run)
                              : fmt::format("{0}-$host.{0}", job.run);
  parts.before += fmt::format(R"sh(if [ -z "${{TPU_WORKER_HOSTNAMES:-}}" ]; then
  host=0
  while [ "$host" -lt {} ]; do
    TPU_WORKER_HOSTNAMES=${{TPU_WORKER_HOSTNAMES:+$TPU_WORKER_HOSTNAMES,}}{}
    host=$((host + 1))
  done
fi
export TPU_WORKER_HOSTNAMES TPU_WORKER_ID="${{TPU_WORKER_ID:-$JOB_COMPLETION_INDEX}}"
)sh",
                              hosts, pod);
}

}  // namespace systole
