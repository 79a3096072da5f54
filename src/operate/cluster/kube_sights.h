#pragma once
// All that a cluster knows of runs, gathered in a few requests whatever their number.

#include <string>
#include <vector>

#include "operate/cluster/kube_api.h"
#include "operate/cluster/kube_phase.h"

namespace systole {

// "app.kubernetes.io/managed-by=systole,systole/run=RUN"; of every run without a name.
std::string labels_of_run(const std::string& run);
// Of the objects in the namespace with these labels. Errors: io; a refusal.
Result<std::vector<KubeSight>> sights_of(KubeApi& api, const std::string& name_space, const std::string& labels);

}  // namespace systole
