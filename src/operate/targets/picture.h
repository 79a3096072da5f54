#pragma once
// Draws a rendered job: the cluster, its pools and nodes, their networks, and the mounted storage.

#include <string>
#include <vector>

#include "operate/render/cluster_job.h"
#include "operate/targets/gke/cluster.h"

namespace systole {

// The place of a job, from its target.
struct JobPlace {
  std::string cluster;                  // "Slurm, partition gpu"
  std::vector<std::string> nodes = {};  // node names; may be fewer than the nodes: the remaining ones are numbered
  const GkeCluster* gke = nullptr;      // the cluster created for the job; null: none
};
// Mermaid text.
std::string picture_of(const RenderRequest& ask, const ClusterJob& job, const JobPlace& place);

}  // namespace systole
