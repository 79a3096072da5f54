// Objects beside a job: the files that its pods start from, the Service by which they find each other, and a network
// policy that excludes all others.
#include "operate/render/template.h"
#include "operate/targets/kubernetes/pod.h"

namespace systole {
namespace {

constexpr std::size_t kMostFiles = 900 << 10;  // a ConfigMap holds 1 MiB, including names

constexpr const char* kFiles = R"(
apiVersion: v1
kind: ConfigMap
metadata: { name: $name, namespace: $namespace, labels: $labels, annotations: $annotations }
data: $files
)";

constexpr const char* kService = R"(
apiVersion: v1
kind: Service
metadata: { name: $name, namespace: $namespace, labels: $labels }
spec:
  clusterIP: None
  publishNotReadyAddresses: true
  selector: { batch.kubernetes.io/job-name: $name }
  ports: [{ name: rendezvous, port: $port }]
)";

constexpr const char* kPolicy = R"(
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: { name: $name, namespace: $namespace, labels: $labels }
spec:
  podSelector: { matchLabels: { systole/run: $name } }
  policyTypes: [Ingress]
  ingress:
    - from: [{ podSelector: { matchLabels: { systole/run: $name } } }]
    - $metrics
)";

// Google's metrics collectors: those in the cluster, and GKE's managed ones.
constexpr const char* kMetrics = R"(
from:
  - namespaceSelector:
      matchExpressions: [{ key: kubernetes.io/metadata.name, operator: In, values: [gmp-system, gke-gmp-system] }]
ports: [{ port: $port }]
)";

}  // namespace

void add_files(const KubernetesJob& k, PodParts& parts) {
  const std::size_t size = k.ask.workload_file.text.size() + k.ask.plan_file.text.size();
  if (size > kMostFiles)
    parts.wrong.push_back(error(ErrorKind::unsupported,
                                "workload and plan have {} KiB; a ConfigMap takes 1 MiB with all that is in it",
                                size >> 10)
                              .hinted("a plan without its search: systole plan --json keeps it apart"));
  parts.mount("files", "/systole/files", true, Node::map({{"configMap", Node::map({{"name", k.job.run + "-files"}})}}));
  if (k.has_token())
    parts.mount("token", "/systole/token", true,
                Node::map({{"secret", Node::map({{"secretName", k.job.run + "-token"}, {"defaultMode", 0440}})}}));
}

Node config_map(const KubernetesJob& k, const PodParts& parts) {
  Node files;
  files.set("start.sh", start_script(k.ask, k.job, start_script_values(k, parts)));
  for (const RenderedFile& file : carried_files(k.ask)) files.set(file.path, file.text);
  return fill(kFiles, {{"name", k.job.run + "-files"},
                       {"namespace", k.space},
                       {"labels", k.labels},
                       {"annotations", k.annotations},
                       {"files", std::move(files)}});
}

Node headless_service(const KubernetesJob& k) {
  return fill(kService, {{"name", k.job.run}, {"namespace", k.space}, {"labels", k.labels}, {"port", kRendezvousPort}});
}

Node network_policy(const KubernetesJob& k) {
  Node metrics;
  if (const auto& port = k.workload().kubernetes.metrics_port) metrics = fill(kMetrics, {{"port", *port}});
  return fill(kPolicy,
              {{"name", k.job.run}, {"namespace", k.space}, {"labels", k.labels}, {"metrics", std::move(metrics)}});
}

}  // namespace systole
