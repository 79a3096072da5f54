// batch/v1 Job: one pod per index, which is the node's number.
#include "ground/base/exit_code.h"
#include "operate/render/template.h"
#include "operate/targets/kubernetes/pod.h"

namespace systole {
namespace {

// Counts retries per index. Counted per Job, pods that end together, as the nodes of a run do, delay the restart: the
// controller waits 10 s for the first pod and twice as long for each further one: 80 s for four, 10 minutes for seven
// and more.
constexpr const char* kJob = R"(
apiVersion: batch/v1
kind: Job
metadata: $metadata
spec:
  suspend: $suspend
  completionMode: Indexed
  completions: $nodes
  parallelism: $nodes
  backoffLimitPerIndex: $retries
  maxFailedIndexes: 0
  podReplacementPolicy: Failed
  podFailurePolicy: { rules: $rules }
  template: $template
)";

}  // namespace

// Failures that no retry fixes end the job: Systole's exit codes identify them; exit codes of other programs have no
// fixed meaning.
Node failure_rules(const KubernetesJob& k, bool ignore_disruptions) {
  Node rules;
  if (ignore_disruptions)  // a pod that its node evicted does not count
    rules.push(fill("{ action: Ignore, onPodConditions: [{ type: DisruptionTarget, status: \"True\" }] }", {}));
  if (!k.by_agent()) return rules;
  Node codes = Node::map({{"containerName", "systole"},
                          {"operator", "In"},
                          {"values", Node::sequence({kExitNo, kExitUsage, kExitMissing, kExitOverBudget})}});
  return rules.push(Node::map({{"action", "FailJob"}, {"onExitCodes", std::move(codes)}}));
}

Node job_object(const KubernetesJob& k, PodParts& parts) {
  const ClusterJob& job = k.job;
  if (job.nodes.elastic())
    parts.wrong.push_back(key_error(ErrorKind::unsupported, "resources.nodes",
                                    "{}:{}: an Indexed Job has as many pods as it says", job.nodes.least,
                                    job.nodes.most)
                              .hinted(fmt::format("resources.nodes: {}; slurm takes a range, as does kubernetes.kind: "
                                                  "pytorchjob",
                                                  job.nodes.most)));
  if (job.slices > 1)
    parts.wrong.push_back(key_error(ErrorKind::unsupported, "kubernetes.kind", "job: {} is {} slices, and a Job is one",
                                    job.on, job.slices)
                              .hinted("kubernetes.kind: jobset"));
  return fill(kJob, {{"metadata", job_metadata(k, parts)},
                     {"suspend", parts.suspended ? Node(true) : Node()},
                     {"nodes", job.nodes.most},
                     {"retries", job.retries},
                     {"rules", failure_rules(k, true)},
                     {"template", pod_template(k, parts, {.subdomain = job.alone() ? "" : job.run})}});
}

}  // namespace systole
