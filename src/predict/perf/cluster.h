#pragma once
// How the devices of a job are joined: GPUs by fast links within a domain (a machine, or a rack of NVLink) and a
// network between domains; TPUs by the links of a torus within a slice and a data-centre network between slices. Device
// i of the mesh is the i-th of its domain, domain by domain; the last axis of a mesh is the innermost.

#include <optional>
#include <string_view>
#include <vector>

#include "ground/mesh/mesh.h"
#include "predict/perf/accelerator.h"

namespace systole {

struct Cluster {
  Accelerator chip;
  std::int64_t devices = 1;
  std::int64_t domain = 1;       // devices that fast links join; of TPUs those of a slice
  std::int64_t host = 1;         // devices of a machine
  BytesPerSecond fast, network;  // of a device, one way: within the domain (of a torus: one link), between domains
  double fast_reached = 1;       // share of it that collectives get
  Seconds hop;                   // of a ring within the domain
  // Of a torus.
  std::vector<std::int64_t> torus;  // chips along its axes; empty: no torus
  std::vector<bool> closes;         // by axis: a ring
  // Groups whose members must agree once a step: machines, or slices.
  std::int64_t machines() const;
};

struct ClusterOptions {
  std::int64_t devices = 1;
  std::optional<std::int64_t> host;       // devices of a machine; without: the chip's usual
  std::optional<BytesPerSecond> network;  // of a device; without: the chip's usual
  std::vector<std::int64_t> torus;        // of TPUs, of one slice; empty: the most even
  std::int64_t slices = 1;
};
// Errors: not_found or invalid, naming the fact or the option.
Result<Cluster> cluster_of(const CatalogEntry& chip, const ClusterOptions& options);

// What joins the ranks of a collective over some axes of a mesh.
struct GroupLinks {
  std::int64_t ranks = 1, inside = 1;  // in all; of them neighbours within one domain
  BytesPerSecond bandwidth;            // that a rank has in a ring over all of them, before anyone's share
  bool leaves() const { return ranks > inside; }
};
// REQUIRES: axes of the mesh, outermost first, joined by commas.
GroupLinks links_of(const Cluster& cluster, const Mesh& mesh, std::string_view axes);

}  // namespace systole
