// A pod's secrets, by reference: a Secret's key is a variable; those of Secret Manager are files from GKE's driver
// (SecretProviderClass), which the agent turns into variables. Secrets on the submitting machine are not available.
#include <algorithm>

#include "describe/spec/secret.h"
#include "operate/render/template.h"
#include "operate/targets/kubernetes/pod.h"

namespace systole {
namespace {

using Source = SecretReference::Source;

constexpr const char* kFolder = "/systole/secrets";

constexpr const char* kProvider = R"(
apiVersion: secrets-store.csi.x-k8s.io/v1
kind: SecretProviderClass
metadata: { name: $name, namespace: $namespace, labels: $labels }
spec: { provider: gke, parameters: { secrets: $secrets } }
)";

void add_provider(const KubernetesJob& k, std::string secrets, PodParts& parts) {
  const std::string name = k.job.run + "-secrets";
  parts.objects.push_back(
      fill(kProvider, {{"name", name}, {"namespace", k.space}, {"labels", k.labels}, {"secrets", std::move(secrets)}}));
  Node csi = Node::map({{"driver", "secrets-store-gke.csi.k8s.io"}, {"readOnly", true}});
  csi.set("volumeAttributes", Node::map({{"secretProviderClass", name}}));
  parts.mount("secrets", kFolder, true, Node::map({{"csi", std::move(csi)}}));
  if (k.by_agent()) parts.set_env("SYSTOLE_SECRETS", kFolder);
  if (k.workload().kubernetes.gcp_service_account.empty() && k.workload().kubernetes.service_account.empty())
    parts.wrong.push_back(
        key_error(ErrorKind::invalid, "secrets", "Secret Manager asks who the pod is, and it is nobody")
            .hinted("kubernetes.gcp_service_account: NAME@PROJECT.iam.gserviceaccount.com"));
}

bool is_in_volume(const Workload& w, const std::string& path) {
  const auto holds = [&](const std::string& folder) { return path.starts_with(folder + "/"); };
  return std::ranges::any_of(w.claims, [&](const auto& claim) { return holds(claim.first); }) ||
         std::ranges::any_of(w.volumes, [&](const auto& volume) { return holds(volume.first); });
}

}  // namespace

void add_secrets(const KubernetesJob& k, PodParts& parts) {
  const auto refuse = [&](const std::string& name, const char* why) {
    parts.wrong.push_back(key_error(ErrorKind::unsupported, "secrets", "{}: {}", name, why)
                              .hinted("kubernetes:SECRET/KEY (kubectl create secret generic SECRET "
                                      "--from-file=KEY=PATH); slurm takes it as it is"));
  };
  std::string managed;
  for (const auto& [name, text] : k.workload().secrets) {
    const SecretReference reference = read_secret_reference(text).value();
    switch (reference.source) {
      case Source::kubernetes: {
        Node key = Node::map({{"name", reference.name}, {"key", reference.key}});
        Node from = Node::map({{"secretKeyRef", std::move(key)}});
        parts.env.push(Node::map({{"name", name}, {"valueFrom", std::move(from)}}));
        break;
      }
      case Source::secret_manager:
        managed += fmt::format("- resourceName: \"{}\"\n  path: \"{}\"\n", reference.resource(), name);
        if (!k.by_agent()) parts.before += fmt::format("{0}=$(cat {1}/{0})\nexport {0}\n", name, kFolder);
        break;
      case Source::environment: refuse(name, "a pod has no environment of whoever submits it"); break;
      case Source::file:
        if (!is_in_volume(k.workload(), reference.name))
          refuse(name, "the file is in no volume of the pod");
        else if (!k.by_agent())
          refuse(name, "only the agent reads files, and kubernetes.launcher is another");
        break;
    }
  }
  if (!managed.empty()) add_provider(k, std::move(managed), parts);
}

}  // namespace systole
