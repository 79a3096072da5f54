#include "operate/targets/picture.h"

#include <algorithm>

#include "ground/base/counted.h"
#include "operate/render/drawing.h"
#include "operate/render/topology.h"

namespace systole {
namespace {

constexpr std::int64_t kMostDrawn = 3;  // nodes or slices drawn side by side; those between are drawn as one box

std::string ranks_text(const ClusterJob& job, std::int64_t node) {
  const std::int64_t first = node * job.ranks_per_node;
  return job.ranks_per_node == 1 ? fmt::format("rank {}", first)
                                 : fmt::format("ranks {} to {}", first, first + job.ranks_per_node - 1);
}

std::string node_text(const ClusterJob& job, const JobPlace& place, std::int64_t node) {
  const bool named = node < static_cast<std::int64_t>(place.nodes.size());
  std::string text = named ? place.nodes[static_cast<std::size_t>(node)] : fmt::format("node {}", node);
  text += ": " + (job.replicas ? counted(job.pods_per_node, "server") : ranks_text(job, node));
  const std::string chip = job.machine == nullptr ? "" : " x " + job.machine->accelerator;
  if (job.devices_per_node() > 0) text += fmt::format(", {}{}", job.devices_per_node(), chip.empty() ? " GPUs" : chip);
  if (node >= job.nodes.least) text += ", may come and go";
  return text;
}

void draw_nodes(Drawing& d, const ClusterJob& job, const JobPlace& place, std::int64_t first, std::int64_t count) {
  for (std::int64_t n = 0; n < count; ++n) {
    const bool drawn = n + 1 < kMostDrawn || n + 1 == count || count <= kMostDrawn;
    if (drawn) d.box(node_text(job, place, first + n));
    if (!drawn && n + 1 == kMostDrawn) d.box(fmt::format("{} more", count - kMostDrawn));
  }
}

std::string pool_text(const GkePool& pool) {
  std::string text = fmt::format("pool {}: ", pool.name);
  text += pool.autoscaled() ? fmt::format("{} to {}", pool.least, pool.most) : std::to_string(pool.nodes);
  text += " x " + pool.machine;
  if (!pool.topology.empty()) text += ", slice of " + pool.topology;
  if (pool.terms != Provisioning::on_demand) text += fmt::format(", {}", name_of(pool.terms));
  if (pool.compact) text += ", close together";
  std::ranges::replace(text, '_', '-');
  return text;
}

std::string network_text(const GkeCluster& gke) {
  return fmt::format("network {}: {}, to the internet by NAT alone", gke.network, kGkeNodeRange);
}

// Draws the nodes' boxes, grouped as they are bought or wired; returns their ids.
std::vector<std::string> draw_groups(Drawing& d, const RenderRequest& ask, const ClusterJob& job,
                                     const JobPlace& place) {
  std::vector<std::string> groups;
  const std::int64_t each = job.slice && !job.replicas ? job.slice->hosts : job.nodes.most;
  const std::int64_t count = job.slice ? job.slices : 1;
  for (std::int64_t g = 0; g < count; ++g) {
    const bool drawn = g + 1 < kMostDrawn || g + 1 == count || count <= kMostDrawn;
    if (!drawn && g + 1 == kMostDrawn) groups.push_back(d.box(fmt::format("{} more slices", count - kMostDrawn)));
    if (!drawn) continue;
    std::string text = place.gke != nullptr ? pool_text(place.gke->pools[static_cast<std::size_t>(g)])
                       : job.slice          ? fmt::format("slice {}: {}", g, job.slice->by_shape())
                                            : fmt::format("run {}", job.run);
    if (const std::string domain = topology_of(ask, job).domain; !domain.empty()) text += "; " + domain;
    groups.push_back(d.open(text));
    draw_nodes(d, job, place, g * each, each);
    d.close();
  }
  return groups;
}

// Whether the drawing already has the folder of runs.
bool is_mounted(const Workload& w, const std::string& folder) {
  const auto within = [&](const auto& each) { return folder == each.first || folder.starts_with(each.first + "/"); };
  return std::ranges::any_of(w.claims, within) || std::ranges::any_of(w.volumes, within);
}

std::string volume_text(const std::string& path, const VolumeSpec& volume) {
  std::string kind = name_of(volume.kind);
  std::ranges::replace(kind, '_', ' ');
  std::string text = fmt::format("{}: {}", path, kind);
  if (!volume.of.empty()) text += " " + volume.of;
  if (volume.size) text += ", " + to_string(*volume.size);
  return text + (volume.read_only ? ", read only" : "");
}

}  // namespace

std::string picture_of(const RenderRequest& ask, const ClusterJob& job, const JobPlace& place) {
  const GkeCluster* gke = place.gke;
  Drawing d(fmt::format("{} on {}", job.run, ask.target->name));
  d.open(place.cluster);
  if (gke != nullptr) d.box(fmt::format("system: 1 x {}", kGkeSystemMachine));
  const std::vector<std::string> groups = draw_groups(d, ask, job, place);
  d.close();
  const auto join_all = [&](const std::string& to, const std::string& text = "") {
    for (const std::string& group : groups) d.join(group, to, text);
  };
  if (gke != nullptr) join_all(d.box(network_text(*gke), Drawing::Shape::stadium));
  if (gke != nullptr)
    for (const GkeNetwork& network : gke->networks)
      join_all(d.box(fmt::format("network {}: {} to each node", network.name, network.subnets.size()),
                     Drawing::Shape::stadium));
  const Topology topology = topology_of(ask, job);
  if (!topology.network.empty()) join_all(d.box(topology.network, Drawing::Shape::stadium));
  for (const auto& [path, claim] : ask.workload.claims)
    join_all(d.box(fmt::format("{}: claim {}", path, claim), Drawing::Shape::cylinder));
  for (const auto& [path, volume] : ask.workload.volumes)
    join_all(d.box(volume_text(path, volume), Drawing::Shape::cylinder));
  if (!job.replicas && !is_mounted(ask.workload, job.folder))
    join_all(d.box("runs: " + job.folder, Drawing::Shape::cylinder));
  return d.text();
}

}  // namespace systole
