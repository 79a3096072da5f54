#include "operate/targets/kubernetes/pod.h"

#include <cmath>

#include "operate/render/template.h"

namespace systole {
namespace {

constexpr std::int64_t kUser = 10001;  // not used by any image

constexpr const char* kPod = R"(
metadata: { labels: $labels, annotations: $annotations }
spec:
  subdomain: $subdomain
  restartPolicy: $restart
  terminationGracePeriodSeconds: $grace
  serviceAccountName: $account
  automountServiceAccountToken: $mounts_token
  nodeSelector: $selector
  tolerations: $tolerations
  topologySpreadConstraints: $spread
  resourceClaims: $resource_claims
  securityContext:
    runAsNonRoot: true
    runAsUser: $user
    runAsGroup: $user
    fsGroup: $user
    seccompProfile: { type: RuntimeDefault }
  initContainers: $init_containers
  containers:
    - name: $container
      image: $image
      command: $command
      env: $env
      ports: $ports
      resources: { requests: $requests, limits: $limits, claims: $claims }
      startupProbe: $startup
      readinessProbe: $readiness
      livenessProbe: $liveness
      lifecycle: $lifecycle
      securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: [ALL], add: $capabilities } }
      volumeMounts: $mounts
  volumes: $volumes
)";

Node text_or_none(const std::string& text) { return text.empty() ? Node() : Node(text); }

}  // namespace

void PodParts::set_env(std::string_view name, std::string_view value) {
  Node others = Node::sequence();
  for (const Node& one : env.items())
    if (one.find("name")->text() != name) others.push(one);
  env = std::move(others.push(Node::map({{"name", name}, {"value", value}})));
}

void PodParts::set_env_from(std::string_view name, std::string_view field_path) {
  env.push(
      Node::map({{"name", name}, {"valueFrom", Node::map({{"fieldRef", Node::map({{"fieldPath", field_path}})}})}}));
}

void PodParts::mount(const std::string& name, const std::string& path, bool read_only, Node source) {
  source.set("name", name);
  volumes.push(std::move(source));
  Node one = Node::map({{"name", name}, {"mountPath", path}});
  if (read_only) one.set("readOnly", true);
  mounts.push(std::move(one));
}

void PodParts::tolerate(std::string_view key, std::string_view value) {
  Node one = Node::map({{"key", key}, {"operator", value.empty() ? "Exists" : "Equal"}});
  if (!value.empty()) one.set("value", value);
  tolerations.push(std::move(one.set("effect", "NoSchedule")));
}

PodParts pod_parts(const KubernetesJob& k) {
  PodParts parts;
  parts.set_env("HOME", "/tmp");
  parts.set_env_from("POD_IP", "status.podIP");
  add_files(k, parts);
  add_claims(k, parts);
  add_volumes(k, parts);
  add_devices(k, parts);
  add_host_share(k, parts);
  add_shared_memory(k, parts);
  add_tpu_workers(k, parts);
  add_network(k, parts);
  add_rendezvous(k, parts);
  add_secrets(k, parts);
  add_identity(k, parts);
  add_queue(k, parts);
  add_provisioning(k, parts);
  return parts;
}

std::int64_t grace_of(const ClusterJob& job) { return static_cast<std::int64_t>(std::ceil(job.notice.count())) + 5; }

Node merged(Node base, const Node& more) {
  for (const Node::Entry& entry : more.entries()) base.set(entry.key, entry.value);
  return base;
}

Node job_metadata(const KubernetesJob& k, const PodParts& parts) {
  return Node::map({{"name", k.job.run},
                    {"namespace", k.space},
                    {"labels", merged(k.labels, parts.job_labels)},
                    {"annotations", merged(k.annotations, parts.job_annotations)}});
}

Node pod_template(const KubernetesJob& k, const PodParts& parts, const PodFrame& frame) {
  const Workload& w = k.workload();
  Node ports;
  if (k.has_token()) ports.push(Node::map({{"name", "rendezvous"}, {"containerPort", kRendezvousPort}}));
  for (const Node& port : parts.ports.items()) ports.push(port);
  std::vector<std::pair<std::string, Node>> holes;
  const auto hole = [&](const char* name, Node value) { holes.emplace_back(name, std::move(value)); };
  hole("labels", merged(k.labels, parts.labels));
  hole("annotations", merged(k.annotations, parts.annotations));
  hole("subdomain", text_or_none(frame.subdomain));
  hole("restart", text_or_none(frame.restart));
  hole("grace", grace_of(k.job));
  hole("account", text_or_none(parts.account));
  hole("mounts_token", !w.kubernetes.service_account.empty());
  hole("selector", parts.selector);
  hole("tolerations", parts.tolerations);
  hole("spread", frame.spread);
  hole("resource_claims", parts.resource_claims);
  hole("user", kUser);
  hole("init_containers", parts.init_containers);
  hole("container", frame.container);
  hole("image", w.image);
  hole("command", frame.command);
  hole("env", parts.env);
  hole("ports", std::move(ports));
  hole("requests", parts.requests);
  hole("limits", parts.limits);
  hole("claims", parts.claims);
  hole("startup", frame.startup);
  hole("readiness", frame.readiness);
  hole("liveness", frame.liveness);
  hole("lifecycle", frame.lifecycle);
  hole("capabilities", parts.capabilities);
  hole("mounts", parts.mounts);
  hole("volumes", parts.volumes);
  return fill(kPod, std::move(holes));
}

std::string quantity(Bytes bytes) {
  for (const auto& [unit, name] : {std::pair(kGiB, "Gi"), std::pair(kMiB, "Mi")})
    if (bytes.count() % unit.count() == 0) return fmt::format("{}{}", bytes.count() / unit.count(), name);
  return fmt::format("{}Ki", (bytes.count() + kKiB.count() - 1) / kKiB.count());
}

}  // namespace systole
