// A pod's Google Cloud identity, and access to its metrics.
#include "operate/render/names.h"
#include "operate/render/template.h"
#include "operate/targets/kubernetes/pod.h"

namespace systole {
namespace {

constexpr const char* kAccount = R"(
apiVersion: v1
kind: ServiceAccount
metadata: { name: $name, namespace: $namespace, labels: $labels, annotations: $annotations }
automountServiceAccountToken: false
)";

constexpr const char* kMonitoring = R"(
apiVersion: monitoring.googleapis.com/v1
kind: PodMonitoring
metadata: { name: $name, namespace: $namespace, labels: $labels }
spec:
  selector: { matchLabels: $pods }
  endpoints: [{ port: metrics, interval: 15s }]
)";

void add_metrics(const KubernetesJob& k, PodParts& parts) {
  const KubernetesSpec& spec = k.workload().kubernetes;
  if (!spec.metrics_port) return;
  if (*spec.metrics_port == kRendezvousPort)
    parts.wrong.push_back(key_error(ErrorKind::invalid, "kubernetes.metrics_port", "agents meet at {}", kRendezvousPort)
                              .hinted("another port"));
  parts.ports.push(Node::map({{"name", "metrics"}, {"containerPort", *spec.metrics_port}}));
  Node pods = Node::map({{"systole/run", k.job.run}});
  // A model's metrics are served by rank 0, in the first pod.
  if (k.workload().command.empty() && !k.job.alone()) pods.set("batch.kubernetes.io/job-completion-index", "0");
  parts.objects.push_back(
      fill(kMonitoring, {{"name", k.job.run}, {"namespace", k.space}, {"labels", k.labels}, {"pods", pods}}));
}

}  // namespace

void add_identity(const KubernetesJob& k, PodParts& parts) {
  const KubernetesSpec& spec = k.workload().kubernetes;
  parts.account = spec.service_account;
  if (!spec.gcp_service_account.empty() && parts.account.empty()) {
    parts.account = k.job.run;
    parts.objects.push_back(
        fill(kAccount, {{"name", parts.account},
                        {"namespace", k.space},
                        {"labels", k.labels},
                        {"annotations", Node::map({{"iam.gke.io/gcp-service-account", spec.gcp_service_account}})}}));
  }
  add_metrics(k, parts);
}

std::vector<std::pair<std::string, std::string>> identity_commands(const KubernetesJob& k, const PodParts& parts) {
  const KubernetesSpec& spec = k.workload().kubernetes;
  const std::string& google = spec.gcp_service_account;
  if (google.empty()) return {};
  const std::string account = parts.account;
  // The cluster's account is in the workload identity pool of its project, which a workload names only for GKE.
  const std::string pool =
      k.ask.target->provisions ? k.workload().gke.project : "${CLUSTER_PROJECT:?of the cluster, as in my-lab-7}";
  std::vector<std::pair<std::string, std::string>> commands;
  if (!spec.service_account.empty())
    commands.emplace_back("account", fmt::format("kubectl -n {} annotate serviceaccount {} "
                                                 "iam.gke.io/gcp-service-account={}",
                                                 k.space, account, google));
  commands.emplace_back(
      "identity", fmt::format("gcloud iam service-accounts add-iam-policy-binding {} --project={} "
                              "--role=roles/iam.workloadIdentityUser --member=\"serviceAccount:{}.svc.id.goog[{}/{}]\"",
                              google, gcp_project_of(google), pool, k.space, account));
  for (const auto& [path, volume] : k.workload().volumes)
    if (volume.kind == VolumeSpec::Kind::bucket)
      commands.emplace_back("bucket", fmt::format("gcloud storage buckets add-iam-policy-binding gs://{} "
                                                  "--member=serviceAccount:{} --role=roles/storage.object{}",
                                                  volume.of, google, volume.read_only ? "Viewer" : "User"));
  return commands;
}

}  // namespace systole
