#pragma once
// What Kueue needs: on the job, its place in a queue; and, for the operator of a cluster, the queue itself.

#include <string>

#include "operate/render/kubernetes/pod.h"

namespace systole {

// A label of nodes; block, subblock and host are Google's.
std::string topology_label(std::string_view level);

// queues.yml, of kubernetes.queue_nodes: made once a cluster, so that nothing in it has the run's label.
// REQUIRES: `parts` is complete.
std::string queues_file(const KubernetesJob& k, const PodParts& parts);

// provisioning_requests of the cluster's autoscaler that give nodes all at once.
constexpr const char* kProvisioningClass = "queued-provisioning.gke.io";

}  // namespace systole
