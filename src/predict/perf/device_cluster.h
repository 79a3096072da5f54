#pragma once
// The interconnect of a job's devices. GPUs have fast links within a domain (a machine, or an NVLink rack) and a
// network between domains. TPUs have the links of a torus within a slice and a data-centre network between slices. The
// devices of a mesh fill one domain after the other; the last axis of a mesh is innermost.

#include <optional>
#include <string_view>
#include <vector>

#include "ground/mesh/mesh.h"
#include "predict/perf/accelerator.h"

namespace systole {

struct Cluster {
  Accelerator chip;
  std::int64_t devices = 1;
  std::int64_t domain = 1;       // devices connected by fast links; TPU: a slice
  std::int64_t host = 1;         // devices of a machine
  BytesPerSecond fast, network;  // per device, one way: within the domain (torus: one link), between domains
  double fast_reached = 1;       // fraction of `fast` that collectives reach
  Seconds hop;                   // latency of a step of a ring within the domain
  // Torus only.
  std::vector<std::int64_t> torus;  // chips along its axes; empty: no torus
  std::vector<bool> closes;         // by axis: it is a ring
  // Machines (torus: slices), which synchronise once per step.
  std::int64_t machines() const;
};

struct ClusterOptions {
  std::int64_t devices = 1;
  std::optional<std::int64_t> host;       // devices of a machine; empty: the chip's usual number
  std::optional<BytesPerSecond> network;  // per device, one way; empty: the chip's usual
  std::vector<std::int64_t> torus;        // TPU: shape of a slice; empty: the most even
  std::int64_t slices = 1;
};
// Errors: not_found or invalid, naming the fact or the option.
Result<Cluster> cluster_of(const CatalogEntry& chip, const ClusterOptions& options);

// The links between the ranks of a collective over some mesh axes.
struct GroupLinks {
  std::int64_t ranks = 1, inside = 1;  // all ranks; neighbours within one domain
  BytesPerSecond bandwidth;            // per rank in a ring over all, before any reached fraction
  bool leaves() const { return ranks > inside; }
};
// REQUIRES: axes of the mesh, outermost first, joined by commas.
GroupLinks links_of(const Cluster& cluster, const Mesh& mesh, std::string_view axes);

}  // namespace systole
