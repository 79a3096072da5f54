#pragma once
// Everything that a cluster knows of runs, read in a few requests whatever their number.

#include <string>
#include <vector>

#include "operate/targets/kubernetes/kube_api.h"
#include "operate/targets/kubernetes/kube_status.h"

namespace systole {

// "app.kubernetes.io/managed-by=systole,systole/run=RUN"; without a name: of every run.
std::string labels_of_run(const std::string& run);
// From the objects in the namespace with these labels. Errors: io; a refusal.
Result<std::vector<KubeRunObjects>> run_objects_of(KubeApi& api, const std::string& name_space,
                                                   const std::string& labels);

}  // namespace systole
