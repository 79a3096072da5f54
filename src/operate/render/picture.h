#pragma once
// What is rendered, as a drawing: the cluster, its pools and nodes, their networks, and the storage that they mount.

#include <string>

#include "operate/render/cluster_job.h"
#include "operate/render/gke/cluster.h"

namespace systole {

// Text of Mermaid. `gke`: of target gke, the cluster; else null.
std::string picture_of(const RenderAsk& ask, const ClusterJob& job, const GkeCluster* gke);

}  // namespace systole
