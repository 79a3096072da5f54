#pragma once
// job.yaml, or serve.yaml of a workload that serves, for any Kubernetes cluster.

#include "operate/render/cluster_job.h"

namespace systole {

JobDefaults kubernetes_defaults(const Workload& workload);
// Errors: unsupported, invalid: what no pod supports, or its kind of object does not.
Result<Rendered> render_kubernetes(const RenderRequest& ask, const ClusterJob& job);

}  // namespace systole
