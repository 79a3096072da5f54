#include "operate/render/topology.h"
#include "ground/base/counted.h"

#include <algorithm>
#include <cmath>

namespace systole {
namespace {

std::string rate_of(const CatalogEntry* chip, const char* key, const char* of) {
  if (chip == nullptr || !chip->facts.contains(key)) return "";
  const Result<BytesPerSecond> rate = chip->bytes_per_second(key);
  return rate.ok() ? fmt::format(", {:g} GB/s each way a {}", rate->count() / 1e9, of) : "";
}

std::string network_rate(const Fabric* fabric) {
  if (fabric == nullptr || !fabric->per_accelerator) return "";
  return fmt::format(", {:g} Gbit/s a chip", fabric->per_accelerator->count() * 8 / 1e9);
}

Topology of_slices(const ClusterJob& job, const CatalogEntry* chip) {
  Topology topology;
  topology.domain = fmt::format("each slice: {} of {} on {}, a torus of {}{}", counted(job.slice->chips, "chip"),
                                job.slice->accelerator, counted(job.slice->hosts, "host"), job.slice->shape_text(),
                                rate_of(chip, "link.bandwidth", "link"));
  if (job.slices > 1) topology.network = "between slices: the data-centre network" + network_rate(job.fabric);
  return topology;
}

Topology of_gpus(const ClusterJob& job, const CatalogEntry* chip) {
  const std::int64_t here = job.gpus_per_node;
  const bool nvlink = chip != nullptr && chip->facts.contains("nvlink.bandwidth") && here > 1;
  std::int64_t nodes = 1;  // in one NVLink domain
  if (nvlink && job.fabric != nullptr && job.fabric->transport.starts_with("MNNVL"))
    nodes = std::max<std::int64_t>(1, std::llround(chip->number("nvlink.domain").value()) / here);
  const std::string links = nvlink     ? "NVLink" + rate_of(chip, "nvlink.bandwidth", "chip")
                            : here > 1 ? "PCI Express" + rate_of(chip, "pcie.bandwidth", "chip")
                                       : "alone";
  Topology topology;
  topology.domain =
      fmt::format("{}: {} x {}, {}", nodes == 1 ? "each node" : fmt::format("up to {} nodes of a rack", nodes),
                  nodes * here, job.machine->accelerator, links);
  if (job.nodes.most > 1 && !job.replicas)  // servers do not speak to each other
    topology.network = fmt::format("between {}: {}{}", nodes == 1 ? "nodes" : "racks",
                                   job.fabric == nullptr ? "TCP" : job.fabric->transport, network_rate(job.fabric));
  return topology;
}

}  // namespace

Topology topology_of(const RenderRequest& ask, const ClusterJob& job) {
  if (job.machine == nullptr || job.devices_per_node() == 0) return {};
  const CatalogEntry* chip = nullptr;
  if (ask.facts.catalog != nullptr) {
    const Result<const CatalogEntry*> found = ask.facts.catalog->find_accelerator(job.machine->accelerator);
    if (found.ok()) chip = *found;
  }
  return job.slice ? of_slices(job, chip) : of_gpus(job, chip);
}

std::string topology_comment(const RenderRequest& ask, const ClusterJob& job) {
  const Topology topology = topology_of(ask, job);
  if (topology.domain.empty()) return "";
  return fmt::format("# Topology: {}\n", topology.domain) +
         (topology.network.empty() ? "" : fmt::format("#   {}\n", topology.network));
}

}  // namespace systole
