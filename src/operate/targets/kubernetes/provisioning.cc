// Requests all nodes at once: with a queue, Kueue does at each admission; without one, a ProvisioningRequest beside the
// job, with a template like its pods.
#include "operate/render/template.h"
#include "operate/targets/kubernetes/queue.h"

namespace systole {
namespace {

constexpr Seconds kLongest{604800};  // seven days, limit of Google's Dynamic Workload Scheduler

constexpr const char* kTemplate = R"(
apiVersion: v1
kind: PodTemplate
metadata: { name: $name, namespace: $namespace, labels: $labels }
template: $template
)";

constexpr const char* kRequest = R"(
apiVersion: autoscaling.x-k8s.io/v1
kind: ProvisioningRequest
metadata: { name: $name, namespace: $namespace, labels: $labels }
spec:
  provisioningClassName: $class
  parameters: { maxRunDurationSeconds: $longest }
  podSets: [{ count: $nodes, podTemplateRef: { name: $name } }]
)";

Status check(const KubernetesJob& k) {
  const auto wrong = [](std::string what, const char* hint) {
    return key_error(ErrorKind::invalid, "kubernetes.queued", "{}", what).hinted(hint);
  };
  if (!k.job.longest) return wrong("for how long?", "resources.longest: 1d; up to 7 days");
  if (*k.job.longest > kLongest) return wrong("nodes are given for 7 days at most", "resources.longest: 7d");
  if (k.job.terms && *k.job.terms != Provisioning::flex_start)
    return wrong("spot and reserved nodes are not waited for so", "resources.provisioning: flex-start, or none");
  if (k.job.device().empty()) return wrong("only nodes with accelerators are given so", "take it out");
  return {};
}

}  // namespace

void add_provisioning(const KubernetesJob& k, PodParts& parts) {
  if (!k.workload().kubernetes.queued) return;
  if (const Status fits = check(k); !fits.ok()) return parts.wrong.push_back(fits.error());
  const std::string longest = fmt::format("{:.0f}", k.job.longest->count());
  parts.tolerate("cloud.google.com/gke-queued", "true");
  parts.annotations.set("cluster-autoscaler.kubernetes.io/safe-to-evict", "false");
  if (!k.workload().kubernetes.queue.empty()) {
    parts.job_annotations.set("provreq.kueue.x-k8s.io/maxRunDurationSeconds", longest);
    return;
  }
  // The template is the pod without a request.
  Node labels = merged(k.labels, Node::map({{"cloud.google.com/apply-warden-policies", "true"}}));
  parts.objects.push_back(fill(kTemplate, {{"name", k.job.run},
                                           {"namespace", k.space},
                                           {"labels", std::move(labels)},
                                           {"template", pod_template(k, parts, {})}}));
  parts.objects.push_back(fill(kRequest, {{"name", k.job.run},
                                          {"namespace", k.space},
                                          {"labels", k.labels},
                                          {"class", kProvisioningClass},
                                          {"longest", longest},
                                          {"nodes", k.job.nodes.most}}));
  parts.annotations.set("autoscaling.x-k8s.io/consume-provisioning-request", k.job.run);
  parts.annotations.set("autoscaling.x-k8s.io/provisioning-class-name", kProvisioningClass);
  parts.warnings.push_back(
      "kubernetes.queued: a request gives its nodes once; with kubernetes.queue Kueue asks again after a preemption");
}

}  // namespace systole
