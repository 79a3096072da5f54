#pragma once
// Kubernetes, by its API server. What runs there is found by two labels, whoever submitted it; a ConfigMap beside it
// tells the rest. Commands inside of a pod are kubectl's.

#include <memory>

#include "operate/cluster/cluster.h"
#include "operate/cluster/kube_api.h"

namespace systole {

// `where`: context and namespace; empty: those of the kubeconfig. Errors: those of kube_access.
Result<std::unique_ptr<ClusterClient>> open_kubernetes(const ClusterClient::Whereabouts& where);
// For tests: by this one.
std::unique_ptr<ClusterClient> kubernetes_by(std::unique_ptr<KubeApi> api, std::string name_space);

}  // namespace systole
