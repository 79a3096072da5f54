#pragma once
// Objects for Kueue: the job's queue label; and, for a cluster's administrator, the queue itself.

#include <string>

#include "operate/targets/kubernetes/pod.h"

namespace systole {

// queues.yml, from kubernetes.queue_nodes: created once per cluster, so nothing in it has the run's label. REQUIRES:
// `parts` is complete.
std::string queues_file(const KubernetesJob& k, const PodParts& parts);

// class of provisioning requests whose nodes come all at once
constexpr const char* kProvisioningClass = "queued-provisioning.gke.io";

}  // namespace systole
