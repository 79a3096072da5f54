// JobSet: one Job per TPU slice, or one for all nodes; all restart together when one fails.
#include "operate/render/template.h"
#include "operate/targets/kubernetes/pod.h"

namespace systole {
namespace {

// Fields of network and failurePolicy are immutable. A rule needs a name.
constexpr const char* kJobSet = R"(
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: $metadata
spec:
  suspend: $suspend
  network: { enableDNSHostnames: true, subdomain: $name, publishNotReadyAddresses: true }
  coordinator: $coordinator
  failurePolicy: { maxRestarts: $retries, restartStrategy: BlockingRecreate, rules: $refused }
  replicatedJobs:
    - name: $replicated
      replicas: $slices
      template:
        metadata: { labels: $labels, annotations: $annotations }
        spec:
          completionMode: Indexed
          completions: $hosts
          parallelism: $hosts
          backoffLimit: 0
          podFailurePolicy: { rules: $rules }
          template: $template
)";

// A refusal by its jobs is not retried.
constexpr const char* kRefused = R"([{ name: refused, action: FailJobSet, onJobFailureReasons: [PodFailurePolicy] }])";

// JobSet derives names: of pods NAME-slice-J-P-xxxxx, and with several slices the coordinator's label,
// NAME-slice-0-0.NAME. Each is limited to 63 characters.
void check_name(const KubernetesJob& k, PodParts& parts) {
  const ClusterJob& job = k.job;
  const std::size_t jobs = std::to_string(job.slices - 1).size(),
                    pods = std::to_string(job.hosts_per_slice() - 1).size();
  const std::string replicated = replicated_name(job);
  std::size_t most = 63 - (replicated.size() + jobs + pods + 9);
  if (job.slices > 1) most = std::min(most, (63 - (replicated.size() + 6)) / 2);
  if (job.run.size() > most)
    parts.wrong.push_back(key_error(ErrorKind::invalid, "name", "'{}' has {} characters; a JobSet of {} {}{} takes {}",
                                    job.run, job.run.size(), job.slices > 1 ? job.slices : job.hosts_per_slice(),
                                    job.slices > 1 ? "slice" : "node",
                                    (job.slices > 1 ? job.slices : job.hosts_per_slice()) == 1 ? "" : "s", most)
                              .hinted("a shorter name, or --run"));
}

}  // namespace

std::string replicated_name(const ClusterJob& job) { return job.tpu() ? "slice" : "node"; }

Node jobset_object(const KubernetesJob& k, PodParts& parts) {
  const ClusterJob& job = k.job;
  check_name(k, parts);
  if (job.nodes.elastic())
    parts.wrong.push_back(
        key_error(ErrorKind::unsupported, "resources.nodes", "{}:{}: a JobSet has as many pods as it says",
                  job.nodes.least, job.nodes.most)
            .hinted(fmt::format("resources.nodes: {}; kubernetes.kind: pytorchjob takes a range", job.nodes.most)));
  const std::string replicated = replicated_name(job);
  // A GKE slice is a node pool: each job gets one to itself.
  if (job.tpu())
    parts.job_annotations.set("alpha.jobset.sigs.k8s.io/exclusive-topology", "cloud.google.com/gke-nodepool");
  Node coordinator;
  if (job.slices > 1) coordinator = Node::map({{"replicatedJob", replicated}, {"jobIndex", 0}, {"podIndex", 0}});
  const Node rules = failure_rules(k, false);  // a lost pod ends its whole slice's program
  return fill(kJobSet, {{"metadata", job_metadata(k, parts)},
                        {"suspend", parts.suspended ? Node(true) : Node()},
                        {"name", job.run},
                        {"coordinator", std::move(coordinator)},
                        {"retries", job.retries},
                        {"refused", rules.is_null() ? Node() : fill(kRefused, {})},
                        {"replicated", replicated},
                        {"slices", job.slices},
                        {"labels", k.labels},
                        {"annotations", k.annotations},
                        {"hosts", job.hosts_per_slice()},
                        {"rules", rules},
                        {"template", pod_template(k, parts, {})}});
}

}  // namespace systole
