// JobSet: a Job a slice of TPUs, or one of all nodes, begun again together where one of them fails.
#include "operate/render/kubernetes/pod.h"
#include "operate/render/template.h"

namespace systole {
namespace {

// Fields of network and failurePolicy cannot be changed later. A rule needs its name.
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

// What its jobs refused is not tried again.
constexpr const char* kRefused = R"([{ name: refused, action: FailJobSet, onJobFailureReasons: [PodFailurePolicy] }])";

// JobSet makes names of its own: of pods NAME-slice-J-P-xxxxx, and of several slices the label of the coordinator,
// NAME-slice-0-0.NAME. Each has 63 characters at most.
void check_name(const KubernetesJob& k, PodParts& parts) {
  const ClusterJob& job = k.job;
  const std::size_t jobs = std::to_string(job.slices - 1).size(),
                    pods = std::to_string(job.hosts_per_slice() - 1).size();
  const std::string replicated = replicated_name(job);
  std::size_t most = 63 - (replicated.size() + jobs + pods + 9);
  if (job.slices > 1) most = std::min(most, (63 - (replicated.size() + 6)) / 2);
  if (job.run.size() > most)
    parts.wrong.push_back(error(ErrorKind::invalid, "name: '{}' has {} characters; a JobSet of {} {}{} takes {}",
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
        error(ErrorKind::unsupported, "resources.nodes: {}:{}: a JobSet has as many pods as it says", job.nodes.least,
              job.nodes.most)
            .hinted(fmt::format("resources.nodes: {}; kubernetes.kind: pytorchjob takes a range", job.nodes.most)));
  const std::string replicated = replicated_name(job);
  // Slices of GKE are node pools: each has one to itself.
  if (job.tpu())
    parts.job_annotations.set("alpha.jobset.sigs.k8s.io/exclusive-topology", "cloud.google.com/gke-nodepool");
  Node coordinator;
  if (job.slices > 1) coordinator = Node::map({{"replicatedJob", replicated}, {"jobIndex", 0}, {"podIndex", 0}});
  const Node rules = failure_rules(k, false);  // a pod that is lost costs its whole slice its program
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
