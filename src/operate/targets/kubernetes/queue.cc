#include "operate/targets/kubernetes/queue.h"

#include <algorithm>

#include "ground/base/sourced_yaml.h"
#include "operate/render/template.h"

namespace systole {
namespace {

constexpr const char* kHostname = "kubernetes.io/hostname";
constexpr std::string_view kLevels[] = {"block", "subblock", "host"};

constexpr const char* kTopology = R"(
apiVersion: kueue.x-k8s.io/v1beta2
kind: Topology
metadata: { name: $name, labels: $labels }
spec: { levels: $levels }
)";

constexpr const char* kFlavor = R"(
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: { name: $name, labels: $labels }
spec: { nodeLabels: $node_labels, tolerations: $tolerations, topologyName: $topology }
)";

constexpr const char* kClusterQueue = R"(
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: { name: $name, labels: $labels }
spec:
  cohortName: $cohort
  namespaceSelector: { matchLabels: { kubernetes.io/metadata.name: $namespace } }
  preemption: { withinClusterQueue: LowerPriority, reclaimWithinCohort: $reclaim }
  resourceGroups: [{ coveredResources: $covered, flavors: [{ name: $name, resources: $quotas }] }]
  admissionChecksStrategy: { admissionChecks: [{ name: $check }] }
)";

constexpr const char* kLocalQueue = R"(
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: { name: $name, namespace: $namespace, labels: $labels }
spec: { clusterQueue: $name }
)";

constexpr const char* kPriority = R"(
apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: { name: $name, labels: $labels }
value: $value
description: $description
)";

constexpr const char* kCheck = R"(
apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata: { name: $name, labels: $labels }
spec:
  controllerName: kueue.x-k8s.io/provisioning-request
  parameters: { apiGroup: kueue.x-k8s.io, kind: ProvisioningRequestConfig, name: $name }
)";

constexpr const char* kCheckConfig = R"(
apiVersion: kueue.x-k8s.io/v1beta2
kind: ProvisioningRequestConfig
metadata: { name: $name, labels: $labels }
spec: { provisioningClassName: $class, managedResources: [$device] }
)";

// "512Gi" times eight is "4096Gi".
std::string times(const std::string& quantity, std::int64_t n) {
  const std::size_t end = std::min(quantity.find_first_not_of("0123456789"), quantity.size());
  return std::to_string(std::stoll(quantity.substr(0, end)) * n) + quantity.substr(end);
}

// The node label of a topology level; block, subblock and host are Google's.
std::string topology_label(std::string_view level) {
  const bool google = std::ranges::find(kLevels, level) != std::end(kLevels);
  return google ? fmt::format("cloud.google.com/gce-topology-{}", level) : std::string(level);
}

Node levels_of(const std::string& topology) {
  const std::string level = topology.substr(topology.find(':') + 1);
  std::vector<std::string> labels;
  if (std::ranges::find(kLevels, level) != std::end(kLevels)) {
    for (const std::string_view one : kLevels) labels.push_back(topology_label(one));
  } else if (level != kHostname) {
    labels.push_back(level);
  }
  labels.emplace_back(kHostname);  // Kueue checks node taints only if this is the lowest level
  Node levels = Node::sequence();
  for (const std::string& label : labels) levels.push(Node::map({{"nodeLabel", label}}));
  return levels;
}

class Queues {
 public:
  Queues(const KubernetesJob& k, const PodParts& parts) : k_(k), parts_(parts), spec_(k.workload().kubernetes) {}

  std::vector<Node> objects() {
    if (!spec_.topology.empty()) add(kTopology, {{"name", spec_.queue}, {"levels", levels_of(spec_.topology)}});
    add_flavor();
    const bool checked = spec_.queued && !k_.job.device().empty();
    if (checked) {
      add(kCheckConfig, {{"name", check()}, {"class", kProvisioningClass}, {"device", k_.job.device()}});
      add(kCheck, {{"name", check()}});
    }
    add_cluster_queue(checked);
    add(kLocalQueue, {{"name", spec_.queue}, {"namespace", k_.space}});
    if (!spec_.priority.empty() && spec_.priority_value)
      add(kPriority, {{"name", spec_.priority},
                      {"value", *spec_.priority_value},
                      {"description", "of workloads that say kubernetes.priority: " + spec_.priority}});
    return std::move(objects_);
  }

 private:
  void add(const char* yaml, std::vector<std::pair<std::string, Node>> holes) {
    holes.emplace_back("labels", Node::map({{"app.kubernetes.io/managed-by", "systole"}}));
    objects_.push_back(fill(yaml, std::move(holes)));
  }
  std::string check() const { return spec_.queue + "-provisioning"; }

  void add_flavor() {
    const bool placed = !spec_.topology.empty();
    Node labels = parts_.selector;
    // A flavor with a topology must have node labels.
    if (placed && labels.entries().empty()) labels.set("kubernetes.io/os", "linux");
    add(kFlavor, {{"name", spec_.queue},
                  {"node_labels", std::move(labels)},
                  {"tolerations", parts_.tolerations},
                  {"topology", placed ? Node(spec_.queue) : Node()}});
  }

  // Every resource that pods request needs a quota, or Kueue admits none of them.
  void add_cluster_queue(bool checked) {
    Node covered = Node::sequence(), quotas = Node::sequence();
    for (const Node::Entry& entry : parts_.requests.entries()) {
      covered.push(entry.key);
      quotas.push(Node::map({{"name", entry.key}, {"nominalQuota", times(entry.value.text(), *spec_.queue_nodes)}}));
    }
    const bool lends = !spec_.cohort.empty();
    add(kClusterQueue, {{"name", spec_.queue},
                        {"cohort", lends ? Node(spec_.cohort) : Node()},
                        {"namespace", k_.space},
                        {"reclaim", lends ? Node("Any") : Node()},
                        {"covered", std::move(covered)},
                        {"quotas", std::move(quotas)},
                        {"check", checked ? Node(check()) : Node()}});
  }

  const KubernetesJob& k_;
  const PodParts& parts_;
  const KubernetesSpec& spec_;
  std::vector<Node> objects_;
};

}  // namespace

void add_queue(const KubernetesJob& k, PodParts& parts) {
  const KubernetesSpec& spec = k.workload().kubernetes;
  if (spec.queue.empty()) {
    const char* kueues = !spec.priority.empty() ? "priority" : !spec.cohort.empty() ? "cohort" : nullptr;
    if (kueues != nullptr)
      parts.wrong.push_back(
          key_error(ErrorKind::invalid, fmt::format("kubernetes.{}", kueues), "it is of a queue, and there is none")
              .hinted("kubernetes.queue: NAME; kubectl get localqueues lists them"));
    return;
  }
  parts.job_labels.set("kueue.x-k8s.io/queue-name", spec.queue);
  if (!spec.priority.empty()) parts.job_labels.set("kueue.x-k8s.io/priority-class", spec.priority);
  parts.suspended = true;
  if (spec.topology.empty()) return;
  const std::size_t colon = spec.topology.find(':');
  parts.annotations.set(fmt::format("kueue.x-k8s.io/podset-{}-topology", spec.topology.substr(0, colon)),
                        topology_label(spec.topology.substr(colon + 1)));
}

std::string queues_file(const KubernetesJob& k, const PodParts& parts) {
  std::string text = made_from(k.ask, k.job) + "# The queue, for the cluster's operator: once a cluster, not a run.\n";
  bool first = true;
  for (const Node& object : Queues(k, parts).objects()) {
    text += (first ? "" : "---\n") + to_sourced_yaml(object);
    first = false;
  }
  return text;
}

}  // namespace systole
