#include "operate/render/picture.h"

#include <algorithm>

#include "operate/render/drawing.h"
#include "operate/render/topology.h"

namespace systole {
namespace {

constexpr std::int64_t kMostDrawn = 3;  // of nodes or slices side by side; those between stand in one box

std::string ranks_text(const ClusterJob& job, std::int64_t node) {
  const std::int64_t first = node * job.ranks_per_node;
  return job.ranks_per_node == 1 ? fmt::format("rank {}", first)
                                 : fmt::format("ranks {} to {}", first, first + job.ranks_per_node - 1);
}

std::string node_text(const RenderAsk& ask, const ClusterJob& job, std::int64_t node) {
  const auto& hosts = ask.workload.ssh.hosts;
  const bool named = ask.target == RenderTarget::ssh && node < static_cast<std::int64_t>(hosts.size());
  std::string text = named ? hosts[static_cast<std::size_t>(node)] : fmt::format("node {}", node);
  text += ": " + ranks_text(job, node);
  const std::string chip = job.machine == nullptr ? "" : " x " + job.machine->accelerator;
  if (job.devices_per_node() > 0) text += fmt::format(", {}{}", job.devices_per_node(), chip.empty() ? " GPUs" : chip);
  if (node >= job.nodes.least) text += ", may come and go";
  return text;
}

void draw_nodes(Drawing& d, const RenderAsk& ask, const ClusterJob& job, std::int64_t first, std::int64_t count) {
  for (std::int64_t n = 0; n < count; ++n) {
    const bool drawn = n + 1 < kMostDrawn || n + 1 == count || count <= kMostDrawn;
    if (drawn) d.box(node_text(ask, job, first + n));
    if (!drawn && n + 1 == kMostDrawn) d.box(fmt::format("{} more", count - kMostDrawn));
  }
}

std::string cluster_text(const RenderAsk& ask, const ClusterJob& job, const GkeCluster* gke) {
  const Workload& w = ask.workload;
  switch (ask.target) {
    case RenderTarget::slurm: return w.slurm.partition.empty() ? "Slurm" : "Slurm, partition " + w.slurm.partition;
    case RenderTarget::kubernetes:
      return "Kubernetes, namespace " + (w.kubernetes.name_space.empty() ? "default" : w.kubernetes.name_space);
    case RenderTarget::gke:
      return fmt::format("GKE cluster {} in {}, project {}", gke->name, gke->location, gke->project);
    case RenderTarget::ssh: return "machines by ssh";
    case RenderTarget::gcloud:
    case RenderTarget::docker: break;  // have no job
  }
  return job.run;
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

// Boxes for the nodes, by what they are bought or wired in; the ids of these.
std::vector<std::string> draw_groups(Drawing& d, const RenderAsk& ask, const ClusterJob& job, const GkeCluster* gke) {
  std::vector<std::string> groups;
  const std::int64_t each = job.slice ? job.slice->hosts : job.nodes.most;
  const std::int64_t count = job.slice ? job.slices : 1;
  for (std::int64_t g = 0; g < count; ++g) {
    const bool drawn = g + 1 < kMostDrawn || g + 1 == count || count <= kMostDrawn;
    if (!drawn && g + 1 == kMostDrawn) groups.push_back(d.box(fmt::format("{} more slices", count - kMostDrawn)));
    if (!drawn) continue;
    std::string text = gke != nullptr ? pool_text(gke->pools[static_cast<std::size_t>(g)])
                       : job.slice    ? fmt::format("slice {}: {}", g, job.slice->by_shape())
                                      : fmt::format("run {}", job.run);
    if (const std::string domain = topology_of(ask, job).domain; !domain.empty()) text += "; " + domain;
    groups.push_back(d.open(text));
    draw_nodes(d, ask, job, g * each, each);
    d.close();
  }
  return groups;
}

// The folder of runs is in what is drawn already.
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

std::string picture_of(const RenderAsk& ask, const ClusterJob& job, const GkeCluster* gke) {
  Drawing d(fmt::format("{} on {}", job.run, name_of(ask.target)));
  d.open(cluster_text(ask, job, gke));
  if (gke != nullptr) d.box(fmt::format("system: 1 x {}", kGkeSystemMachine));
  const std::vector<std::string> groups = draw_groups(d, ask, job, gke);
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
  if (!is_mounted(ask.workload, job.folder)) join_all(d.box("runs: " + job.folder, Drawing::Shape::cylinder));
  return d.text();
}

}  // namespace systole
