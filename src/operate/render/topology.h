#pragma once
// The network of a job's devices: fast links within a domain (a node, a rack, a slice), a slower network between
// domains. Uses the catalog's figures and omits unknown ones.

#include <string>
#include <vector>

#include "operate/render/cluster_job.h"

namespace systole {

struct Topology {
  std::string domain;   // "each node: 8 x h100, NVLink, 450 GB/s each way a chip"; empty: no accelerators
  std::string network;  // "between nodes: GPUDirect-TCPX, 100 Gbit/s a chip"; empty: a single domain
};

Topology topology_of(const RenderRequest& ask, const ClusterJob& job);
// Comment lines, "# Topology: ..."; "" without accelerators.
std::string topology_comment(const RenderRequest& ask, const ClusterJob& job);

}  // namespace systole
