#pragma once
// A folder of a claim, brought home: a pod that mounts what the run's pods mount writes it to its log as a tar in
// Base64, and ends.

#include <string>

#include "operate/cluster/kube_api.h"
#include "operate/cluster/record.h"

namespace systole {

// `folder`, as the pods of the run name it, into `into`; `pod` is an object that could be one of them.
// Errors: not_found, no such folder there; corrupt, what came is not what was sent; busy, the pod does not start; io.
Status bring_folder(KubeApi& api, const Record& record, const Node& pod, const std::string& folder,
                    const std::string& into);

}  // namespace systole
