#pragma once
// Copies a folder from a claim: a pod with the run's mounts writes it to its log as a tar in Base64, and ends.

#include <string>

#include "operate/cluster/record.h"
#include "operate/targets/kubernetes/kube_api.h"

namespace systole {

// Copies `folder`, named as in the run's pods, to `into`. `pod`: an object like one of them. Errors: not_found, no such
// folder there; corrupt, the received bytes differ from those sent; busy, the pod does not start; io.
Status bring_folder(KubeApi& api, const Record& record, const Node& pod, const std::string& folder,
                    const std::string& into);

}  // namespace systole
