#pragma once
// The output of a run's pods: existing output is read at once, then a thread per pod follows it.

#include <memory>
#include <string>

#include "operate/cluster/cluster.h"
#include "operate/targets/kubernetes/kube_api.h"

namespace systole {

// For pods with these labels; sources have the pods' names, without Kubernetes' random suffix. `first_alone`: only the
// pod of rank 0 and its replacements.
std::unique_ptr<Output> pods_output(std::unique_ptr<KubeApi> api, std::string name_space, std::string labels,
                                    bool first_alone);

// Whether the pod has rank 0 of its run, judged by its index labels; a pod without an index counts as first.
bool is_first(const Node& pod);
// "line-0" from "line-0-x7k2p", if the pod has an index.
std::string short_name(const Node& pod);

}  // namespace systole
