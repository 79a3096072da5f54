#pragma once
// The operators of kinds that clusters do not have by default, at the tested versions (tools/kubernetes).

#include <string_view>

namespace systole {

struct KubeOperator {
  std::string_view group;     // API group that it serves
  std::string_view kinds[2];  // kinds we render that need it, one or two
  std::string_view place;     // argument of `kubectl apply --server-side`, in shell words
};
inline constexpr KubeOperator kKubeOperators[] = {
    {"jobset.x-k8s.io",
     {"JobSet"},
     "-f https://github.com/kubernetes-sigs/jobset/releases/download/v0.12.0/manifests.yaml"},
    {"kubeflow.org",
     {"PyTorchJob", "JAXJob"},
     "-k 'github.com/kubeflow/training-operator.git/manifests/overlays/standalone?ref=v1.9.4'"},
    {"kueue.x-k8s.io",
     {"ResourceFlavor"},
     "-f https://github.com/kubernetes-sigs/kueue/releases/download/v0.19.2/manifests.yaml"},
    {"trainer.kubeflow.org",
     {"TrainJob"},
     "-k 'https://github.com/kubeflow/trainer.git/manifests/overlays/manager?ref=v2.3.0'"},
};

}  // namespace systole
