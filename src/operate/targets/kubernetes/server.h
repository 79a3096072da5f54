#pragma once
// serve.yaml, of workload: serve: a Deployment of servers, each a pod on one device, the Service in front of them, and
// what keeps them available: probes, a rolling update that adds a server before it takes one away, a disruption budget,
// and an autoscaler. On a cluster of GKE's the Service is an internal load balancer, and Managed Prometheus reads the
// servers' metrics.

#include "operate/render/server_words.h"  // kServerPort, of the servers and of the Service
#include "operate/targets/kubernetes/pod.h"

namespace systole {

// The pod of a server, and objects that are created before it. Unsupported features go to `wrong`.
PodParts server_parts(const KubernetesJob& k);
// In the order of creation. REQUIRES: `parts` of server_parts.
std::vector<Node> server_objects(const KubernetesJob& k, const PodParts& parts);
// Resource names of these objects, besides those of `parts`, for kubectl delete.
inline constexpr const char* kServerKinds = "deployment,service,horizontalpodautoscaler,poddisruptionbudget";
// Commands that let a cluster of GKE's read the metric by which it scales: purpose and line.
std::vector<std::pair<std::string, std::string>> scaling_commands(const KubernetesJob& k);

}  // namespace systole
