#pragma once
// How requests reach the servers of a workload on Kubernetes from other networks, and the share of a canary among them.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "operate/targets/kubernetes/pod.h"

namespace systole {

// The Ingress, or the Gateway with its HTTPRoute, of serve.ingress; what is wrong with it, and with serve.canary.
void add_routes(const KubernetesJob& k, PodParts& parts);
// A Gateway divides requests by weights; else every server of either model is behind one Service.
bool routes_by_gateway(const KubernetesJob& k);

// The canary's Deployment and, behind a Gateway, its Service.
std::string canary_name(const KubernetesJob& k);

Node pods_of(const KubernetesJob& k);         // labels of the servers of serve.from
Node canary_pods_of(const KubernetesJob& k);  // of serve.canary.from

// An object of the run: its name, namespace and labels fill the holes of these names.
Node with_place(const KubernetesJob& k, const char* yaml, std::vector<std::pair<std::string, Node>> holes);

}  // namespace systole
