#pragma once
// How a job's devices reach each other: over fast links within a domain (a node, a rack, a slice), over a network
// between domains. Of the catalog's figures; what it has none of is left out.

#include <string>
#include <vector>

#include "operate/render/cluster_job.h"

namespace systole {

struct Topology {
  std::string domain;   // "each node: 8 x h100, NVLink, 450 GB/s each way a chip"; empty: no accelerators
  std::string network;  // "between nodes: GPUDirect-TCPX, 100 Gbit/s a chip"; empty: there is one domain alone
};

Topology topology_of(const RenderAsk& ask, const ClusterJob& job);
// Lines of comment, "# Topology: ..."; "" without accelerators.
std::string topology_comment(const RenderAsk& ask, const ClusterJob& job);

}  // namespace systole
