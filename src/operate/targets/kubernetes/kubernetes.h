#pragma once
// Kubernetes, through its API server. Two labels find everything of a run, whoever submitted it; a ConfigMap has the
// rest. Commands inside a pod use kubectl.

#include <memory>

#include "operate/cluster/cluster.h"
#include "operate/targets/kubernetes/kube_api.h"

namespace systole {

// `where`: context and namespace; empty: those of the kubeconfig. Errors: those of kube_access.
Result<std::unique_ptr<ClusterClient>> open_kubernetes(const ClusterClient::ClusterLocation& where);
// For tests: with this API.
std::unique_ptr<ClusterClient> kubernetes_by(std::unique_ptr<KubeApi> api, std::string name_space);

}  // namespace systole
