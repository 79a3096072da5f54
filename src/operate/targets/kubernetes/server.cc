#include "operate/targets/kubernetes/server.h"

#include <algorithm>
#include <cmath>

#include "operate/render/quote.h"
#include "operate/render/template.h"
#include "operate/targets/kubernetes/server_routes.h"

namespace systole {
namespace {

constexpr const char* kTokenFile = "/systole/token/token";
constexpr const char* kWaiting = "vllm:num_requests_waiting";  // of /metrics (execute/serve/api_routes.cc)

constexpr const char* kDeployment = R"(
apiVersion: apps/v1
kind: Deployment
metadata: $metadata
spec:
  replicas: $replicas
  selector: { matchLabels: $pods }
  strategy: { type: RollingUpdate, rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } }
  progressDeadlineSeconds: $deadline
  template: $template
)";

constexpr const char* kService = R"(
apiVersion: v1
kind: Service
metadata: { name: $name, namespace: $namespace, labels: $labels, annotations: $annotations }
spec:
  type: $type
  selector: $pods
  ports: [{ name: http, port: $port, targetPort: $port }]
)";

constexpr const char* kDisruption = R"(
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: { name: $name, namespace: $namespace, labels: $labels }
spec: { maxUnavailable: 1, selector: { matchLabels: $pods } }
)";

constexpr const char* kAutoscaler = R"(
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: { name: $name, namespace: $namespace, labels: $labels }
spec:
  scaleTargetRef: { apiVersion: apps/v1, kind: Deployment, name: $name }
  minReplicas: $least
  maxReplicas: $most
  metrics:
    - type: Pods
      pods: { metric: { name: $metric }, target: { type: AverageValue, averageValue: $waiting } }
)";

// Google's collectors show the servers' token, and may read no other secret.
constexpr const char* kReader = R"(
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: { name: $name, namespace: $namespace, labels: $labels }
rules: [{ apiGroups: [""], resources: [secrets], resourceNames: [$secret], verbs: [get, list, watch] }]
)";
constexpr const char* kReads = R"(
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: { name: $name, namespace: $namespace, labels: $labels }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: Role, name: $name }
subjects:
  - { kind: ServiceAccount, name: collector, namespace: gmp-system }
  - { kind: ServiceAccount, name: collector, namespace: gke-gmp-system }
)";
constexpr const char* kMonitoring = R"(
apiVersion: monitoring.googleapis.com/v1
kind: PodMonitoring
metadata: { name: $name, namespace: $namespace, labels: $labels }
spec:
  selector: { matchLabels: $pods }
  endpoints:
    - port: http
      path: /metrics
      interval: 15s
      authorization: { type: Bearer, credentials: { secret: { name: $secret, key: token } } }
)";

// The adapter by which GKE's autoscaler reads Cloud Monitoring, at a commit of August 2026.
constexpr const char* kAdapter =
    "https://raw.githubusercontent.com/GoogleCloudPlatform/k8s-stackdriver/673c7dd872a7d8b7c1a26c2af7cca7c33549efa0/"
    "custom-metrics-stackdriver-adapter/deploy/production/adapter_new_resource_model.yaml";

bool on_gke(const KubernetesJob& k) { return k.ask.target->provisions.can; }
// Of both models.
Node all_pods_of(const KubernetesJob& k) {
  const bool both = !k.workload().serve.canary.from.empty();
  return both ? Node::map({{"app.kubernetes.io/instance", k.job.run}}) : pods_of(k);
}
std::string secret_of(const KubernetesJob& k) { return k.job.run + "-token"; }

std::int64_t seconds(Seconds time) { return static_cast<std::int64_t>(std::ceil(time.count())); }

Node command_of(const KubernetesJob& k, const Workload& workload) {
  Node command;
  for (const std::string& word : server_words(workload, k.job, {.token_file = kTokenFile}))
    command.push(kube_value(word));
  return command;
}

std::int64_t startup_seconds(const KubernetesJob& k) { return seconds(startup_budget(k.workload())); }

Node probe(const char* path, std::int64_t period, std::int64_t failures) {
  Node get = Node::map({{"path", path}, {"port", kServerPort}});
  return Node::map({{"httpGet", std::move(get)}, {"periodSeconds", period}, {"failureThreshold", failures}});
}

Node pod_of(const KubernetesJob& k, const PodParts& parts, const Workload& workload) {
  constexpr std::int64_t kPeriod = 5;
  PodFrame frame{.restart = ""};  // Always, the only one of a Deployment
  frame.command = command_of(k, workload);
  frame.startup = probe("/health/ready", kPeriod, (startup_seconds(k) + kPeriod - 1) / kPeriod);
  frame.readiness = probe("/health/ready", kPeriod, 1);
  frame.liveness = probe("/health/live", 10, 6);
  // Until the Service has left it out, it takes requests as before; then TERM lets those in flight end.
  Node sleep = Node::map({{"sleep", Node::map({{"seconds", seconds(kUntilUnlisted)}})}});
  frame.lifecycle = Node::map({{"preStop", std::move(sleep)}});
  frame.spread = Node::sequence({fill(R"({ maxSkew: 1, topologyKey: kubernetes.io/hostname,
    whenUnsatisfiable: ScheduleAnyway, labelSelector: { matchLabels: $pods } })",
                                      {{"pods", pods_of(k)}})});
  return pod_template(k, parts, frame);
}

void check_from(const KubernetesJob& k, const std::string& key, const std::string& from, PodParts& parts) {
  const Workload& w = k.workload();
  if (!from.starts_with('/')) {
    parts.wrong.push_back(key_error(ErrorKind::invalid, key, "{}",
                                    from.empty() ? "nothing says where the model is in a pod"
                                                 : fmt::format("'{}' is no path in a pod", comment_text(from)))
                              .hinted(fmt::format("volumes: {{ /models: {{ bucket: NAME, read_only: true }} }}, "
                                                  "{}: /models/FOLDER",
                                                  key)));
  } else if (!is_held(w, from)) {
    parts.warnings.push_back(
        fmt::format("{}: {} is in no claim or volume, so the image has to have it", key, comment_text(from)));
  } else if (const VolumeSpec* made = new_volume_of(w, from); made != nullptr) {
    if (made->kind == VolumeSpec::Kind::local_ssd)
      parts.wrong.push_back(key_error(ErrorKind::invalid, key,
                                      "{} is on the machine's disks, which are empty when a server starts",
                                      comment_text(from))
                                .hinted("a path in a bucket, nfs, or a claim that has the model"));
    else
      parts.warnings.push_back(fmt::format(
          "{}: {} is in a new, empty volume: no server is ready until a model is copied there; or name a claim "
          "without size, nfs or a bucket that has it",
          key, comment_text(from)));
  }
}

void check_model(const KubernetesJob& k, PodParts& parts) {
  const Workload& w = k.workload();
  check_from(k, "serve.from", w.serve.from, parts);
  if (!w.serve.canary.from.empty()) check_from(k, "serve.canary.from", w.serve.canary.from, parts);
  if (w.serve.parameter == DType::bf16 || w.serve.parameter == DType::f16)
    parts.warnings.push_back(
        "serve.parameter: a server keeps a model's weights as the model has them, or with i8 in int8, with i4 in int4");
  if (w.serve.compute != DType::f32) parts.warnings.push_back("serve.compute: a server computes in f32");
}

// How the autoscaler names the metric: GKE's adapter by Cloud Monitoring, others as the servers do.
std::string metric_of(const KubernetesJob& k) {
  return on_gke(k) ? fmt::format("prometheus.googleapis.com|{}|gauge", kWaiting) : kWaiting;
}

void add_monitoring(const KubernetesJob& k, PodParts& parts) {
  if (on_gke(k)) {
    parts.objects.push_back(with_place(k, kReader, {{"secret", secret_of(k)}}));
    parts.objects.push_back(with_place(k, kReads, {}));
    parts.objects.push_back(with_place(k, kMonitoring, {{"pods", all_pods_of(k)}, {"secret", secret_of(k)}}));
  } else if (k.job.replicas->elastic()) {
    parts.warnings.push_back(
        fmt::format("serve.replicas: the cluster adds servers only where prometheus-adapter gives it {} of its pods, "
                    "and Prometheus shows /metrics the token of secret {}",
                    metric_of(k), secret_of(k)));
  }
}

// The Deployment of the newer model. Its pods are those of another name, so that no Deployment has another's.
void add_canary(const KubernetesJob& k, const PodParts& parts, std::vector<Node>& objects) {
  Workload newer = k.workload();
  newer.serve.from = newer.serve.canary.from;
  PodParts own = parts;
  own.labels.set("systole/run", canary_name(k));
  Node metadata = job_metadata(k, parts);
  metadata.set("name", canary_name(k));
  objects.push_back(fill(kDeployment, {{"metadata", std::move(metadata)},
                                       {"replicas", canary_servers(k.workload().serve, *k.job.replicas)},
                                       {"pods", canary_pods_of(k)},
                                       {"deadline", startup_seconds(k) + 600},
                                       {"template", pod_of(k, own, newer)}}));
}

}  // namespace

PodParts server_parts(const KubernetesJob& k) {
  PodParts parts;
  parts.set_env("HOME", "/tmp");
  parts.mount("token", "/systole/token", true,
              Node::map({{"secret", Node::map({{"secretName", secret_of(k)}, {"defaultMode", 0440}})}}));
  parts.ports.push(Node::map({{"name", "http"}, {"containerPort", kServerPort}}));
  add_claims(k, parts);
  add_volumes(k, parts);
  add_devices(k, parts);
  add_host_share(k, parts);
  // A server takes as many threads as its pod may use: without a limit, those of the whole machine.
  parts.limits = merged(Node::map({{"cpu", *parts.requests.find("cpu")}}), parts.limits);
  add_identity(k, parts);
  add_monitoring(k, parts);
  add_routes(k, parts);
  check_model(k, parts);
  return parts;
}

std::vector<Node> server_objects(const KubernetesJob& k, const PodParts& parts) {
  const CountRange& replicas = *k.job.replicas;
  std::vector<Node> objects = parts.objects;
  Node annotations;
  if (on_gke(k)) annotations.set("networking.gke.io/load-balancer-type", "Internal");
  objects.push_back(with_place(k, kService,
                               {{"annotations", annotations},
                                {"type", on_gke(k) ? "LoadBalancer" : "ClusterIP"},
                                {"pods", routes_by_gateway(k) ? pods_of(k) : all_pods_of(k)},
                                {"port", kServerPort}}));
  objects.push_back(with_place(k, kDisruption, {{"pods", pods_of(k)}}));
  // The autoscaler sets the number of an elastic one, and a number here would take that back at each apply.
  objects.push_back(
      fill(kDeployment, {{"metadata", job_metadata(k, parts)},
                         {"replicas", replicas.elastic() ? Node() : Node(replicas.most)},
                         {"pods", pods_of(k)},
                         {"deadline", startup_seconds(k) + 600},  // 10 minutes to get a node and the image
                         {"template", pod_of(k, parts, k.workload())}}));
  if (!k.workload().serve.canary.from.empty()) add_canary(k, parts, objects);
  if (!replicas.elastic()) return objects;
  const std::int64_t waiting = std::max<std::int64_t>(1, k.workload().serve.slots / 2);
  objects.push_back(with_place(k, kAutoscaler,
                               {{"least", replicas.least},
                                {"most", replicas.most},
                                {"metric", metric_of(k)},
                                {"waiting", std::to_string(waiting)}}));
  return objects;
}

std::vector<std::pair<std::string, std::string>> scaling_commands(const KubernetesJob& k) {
  if (!on_gke(k) || !k.job.replicas->elastic()) return {};
  return {{"adapter", fmt::format("kubectl apply -f {} # once, by who keeps the cluster", kAdapter)},
          {"reader",
           fmt::format("gcloud projects add-iam-policy-binding {0} --condition=None --role=roles/monitoring.viewer "
                       "--member=\"principal://iam.googleapis.com/projects/$(gcloud projects describe {0} "
                       "--format='value(projectNumber)')/locations/global/workloadIdentityPools/{0}.svc.id.goog/"
                       "subject/ns/custom-metrics/sa/custom-metrics-stackdriver-adapter\"",
                       k.workload().gke.project)}};
}

}  // namespace systole
