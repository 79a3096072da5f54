#include "operate/targets/kubernetes/server.h"

#include <algorithm>
#include <cmath>

#include "operate/render/names.h"
#include "operate/render/quote.h"
#include "operate/render/template.h"

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

// The certificate is the controller's: behind it requests are plain, inside the cluster.
constexpr const char* kIngress = R"(
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: { name: $name, namespace: $namespace, labels: $labels }
spec:
  ingressClassName: $class
  tls: [{ hosts: [$host], secretName: $secret }]
  rules:
    - host: $host
      http: { paths: [{ path: /, pathType: Prefix, backend: { service: { name: $name, port: { name: http } } } }] }
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
std::string secret_of(const KubernetesJob& k) { return k.job.run + "-token"; }
Node pods_of(const KubernetesJob& k) { return Node::map({{"systole/run", k.job.run}}); }

std::int64_t seconds(Seconds time) { return static_cast<std::int64_t>(std::ceil(time.count())); }

Node with_place(const KubernetesJob& k, const char* yaml, std::vector<std::pair<std::string, Node>> holes) {
  holes.insert(holes.end(), {{"name", k.job.run}, {"namespace", k.space}, {"labels", k.labels}});
  return fill(yaml, std::move(holes));
}

Node command_of(const KubernetesJob& k) {
  Node command;
  for (const std::string& word : server_words(k.workload(), k.job, {.token_file = kTokenFile}))
    command.push(kube_value(word));
  return command;
}

std::int64_t startup_seconds(const KubernetesJob& k) { return seconds(startup_budget(k.workload())); }

Node probe(const char* path, std::int64_t period, std::int64_t failures) {
  Node get = Node::map({{"path", path}, {"port", kServerPort}});
  return Node::map({{"httpGet", std::move(get)}, {"periodSeconds", period}, {"failureThreshold", failures}});
}

Node pod_of(const KubernetesJob& k, const PodParts& parts) {
  constexpr std::int64_t kPeriod = 5;
  PodFrame frame{.restart = ""};  // Always, the only one of a Deployment
  frame.command = command_of(k);
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

void check_model(const KubernetesJob& k, PodParts& parts) {
  const Workload& w = k.workload();
  const std::string& from = w.serve.from;
  if (!from.starts_with('/')) {
    parts.wrong.push_back(key_error(ErrorKind::invalid, "serve.from", "{}",
                                    from.empty() ? "nothing says where the model is in a pod"
                                                 : fmt::format("'{}' is no path in a pod", comment_text(from)))
                              .hinted("volumes: { /models: { bucket: NAME, read_only: true } }, "
                                      "serve.from: /models/FOLDER"));
  } else if (!is_held(w, from)) {
    parts.warnings.push_back(
        fmt::format("serve.from: {} is in no claim or volume, so the image has to have it", comment_text(from)));
  } else if (const VolumeSpec* made = new_volume_of(w, from); made != nullptr) {
    if (made->kind == VolumeSpec::Kind::local_ssd)
      parts.wrong.push_back(key_error(ErrorKind::invalid, "serve.from",
                                      "{} is on the machine's disks, which are empty when a server starts",
                                      comment_text(from))
                                .hinted("a path in a bucket, nfs, or a claim that has the model"));
    else
      parts.warnings.push_back(fmt::format(
          "serve.from: {} is in a new, empty volume: no server is ready until a model is copied there; or name a claim "
          "without size, nfs or a bucket that has it",
          comment_text(from)));
  }
  if (w.serve.parameter != DType::i8 && w.serve.parameter != DType::f32)
    parts.warnings.push_back(
        "serve.parameter: a server keeps a model's weights as the model has them, or with i8 in int8");
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
    parts.objects.push_back(with_place(k, kMonitoring, {{"pods", pods_of(k)}, {"secret", secret_of(k)}}));
  } else if (k.job.replicas->elastic()) {
    parts.warnings.push_back(
        fmt::format("serve.replicas: the cluster adds servers only where prometheus-adapter gives it {} of its pods, "
                    "and Prometheus shows /metrics the token of secret {}",
                    metric_of(k), secret_of(k)));
  }
}

void add_ingress(const KubernetesJob& k, PodParts& parts) {
  const IngressSpec& ingress = k.workload().serve.ingress;
  const auto refuse = [&](ErrorKind kind, const char* key, const std::string& why, const char* hint) {
    parts.wrong.push_back(key_error(kind, key, "{}", why).hinted(hint));
  };
  if (ingress.host.empty()) {
    if (!(ingress.tls_secret + ingress.controller).empty())
      refuse(ErrorKind::invalid, "serve.ingress.host", "nothing says by which name the servers are reached",
             "serve.ingress: { host: chat.example.org, tls_secret: chat-tls }");
    return;
  }
  if (on_gke(k))
    return refuse(ErrorKind::unsupported, "serve.ingress",
                  "on gke the servers have an internal load balancer's address",
                  "take serve.ingress out, or --on kubernetes");
  if (!is_host_name(ingress.host))
    refuse(ErrorKind::invalid, "serve.ingress.host", fmt::format("'{}' is no host name", comment_text(ingress.host)),
           "lower-case letters, digits, '-' and '.': chat.example.org");
  if (ingress.tls_secret.empty())
    return refuse(ErrorKind::invalid, "serve.ingress.tls_secret", "requests show their key, which TLS has to hide",
                  "serve.ingress.tls_secret: NAME; kubectl create secret tls NAME --cert=FILE --key=FILE makes it");
  parts.objects.push_back(with_place(k, kIngress,
                                     {{"class", ingress.controller.empty() ? Node() : Node(ingress.controller)},
                                      {"host", ingress.host},
                                      {"secret", ingress.tls_secret}}));
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
  add_ingress(k, parts);
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
                                {"pods", pods_of(k)},
                                {"port", kServerPort}}));
  objects.push_back(with_place(k, kDisruption, {{"pods", pods_of(k)}}));
  // The autoscaler sets the number of an elastic one, and a number here would take that back at each apply.
  objects.push_back(
      fill(kDeployment, {{"metadata", job_metadata(k, parts)},
                         {"replicas", replicas.elastic() ? Node() : Node(replicas.most)},
                         {"pods", pods_of(k)},
                         {"deadline", startup_seconds(k) + 600},  // 10 minutes to get a node and the image
                         {"template", pod_of(k, parts)}}));
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
