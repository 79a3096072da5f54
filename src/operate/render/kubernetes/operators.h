#pragma once
// The operators behind kinds that no cluster has by itself, at the versions that our objects were tried with
// (tools/kubernetes).

#include <string_view>

namespace systole {

struct KubeOperator {
  std::string_view group;     // that it serves
  std::string_view kinds[2];  // of what we render, the one or two that ask for it
  std::string_view place;     // as `kubectl apply --server-side` takes it, in words of a shell
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
