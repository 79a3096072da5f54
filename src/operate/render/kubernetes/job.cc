// batch/v1 Job: one pod an index, which is its node.
#include "ground/base/exit_code.h"
#include "operate/render/kubernetes/pod.h"
#include "operate/render/template.h"

namespace systole {
namespace {

// Retries are counted by index: counted by Job, pods that end together, as the nodes of a run do, make the controller
// wait 10 s for the first and twice as long for each further one before it begins them again: 80 s for four, 10 minutes
// for seven and more.
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

// What no retry changes ends the job: the exit codes of Systole say so; those of a program of others may mean anything.
Node failure_rules(const KubernetesJob& k, bool ignore_disruptions) {
  Node rules;
  if (ignore_disruptions)  // a pod that its node took away counts for nothing
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
    parts.wrong.push_back(error(ErrorKind::unsupported,
                                "resources.nodes: {}:{}: an Indexed Job has as many pods as it says", job.nodes.least,
                                job.nodes.most)
                              .hinted(fmt::format("resources.nodes: {}; slurm takes a range, as does kubernetes.kind: "
                                                  "pytorchjob",
                                                  job.nodes.most)));
  if (job.slices > 1)
    parts.wrong.push_back(
        error(ErrorKind::unsupported, "kubernetes.kind: job: {} is {} slices, and a Job is one", job.on, job.slices)
            .hinted("kubernetes.kind: jobset"));
  return fill(kJob, {{"metadata", job_metadata(k, parts)},
                     {"suspend", parts.suspended ? Node(true) : Node()},
                     {"nodes", job.nodes.most},
                     {"retries", job.retries},
                     {"rules", failure_rules(k, true)},
                     {"template", pod_template(k, parts, {.subdomain = job.alone() ? "" : job.run})}});
}

}  // namespace systole
