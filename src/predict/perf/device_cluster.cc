#include "predict/perf/device_cluster.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "describe/program/collective_call.h"

namespace systole {
namespace {

// Fraction of NVLink that NCCL's collectives reach: 240 of 300 GB/s on A100, 360 of 450 on H100 (nccl-tests, bus
// bandwidth at 1 GiB), less because other kernels run at the same time.
constexpr double kNvlinkReached = 0.75;
constexpr double kTorusReached = 0.95;
constexpr Seconds kNvlinkHop{5e-6};  // step of a ring, nccl-tests at small sizes
constexpr Seconds kTorusHop{1e-6};   // jax-ml/scaling-book, sharding.md

// The most even shape of so many chips, the longest side last.
std::vector<std::int64_t> most_even(std::int64_t chips, std::int64_t dims) {
  std::vector<std::int64_t> sides;
  std::int64_t rest = chips;
  for (std::int64_t left = dims; left > 1; --left) {
    auto side = static_cast<std::int64_t>(
        std::llround(std::floor(std::pow(static_cast<double>(rest), 1.0 / static_cast<double>(left)) + 1e-9)));
    while (side > 1 && rest % side != 0) --side;
    sides.push_back(std::max<std::int64_t>(1, side));
    rest /= sides.back();
  }
  sides.push_back(rest);
  return sides;
}

Result<std::int64_t> count_of(const CatalogEntry& entry, const std::string& key) {
  const double value = TRY(entry.number(key));
  if (value >= 1 && value == std::floor(value)) return static_cast<std::int64_t>(value);
  return error(ErrorKind::invalid, "{} of '{}' is {}, no count of 1 or more", key, entry.name, value)
      .at(entry.facts.at(key).where);
}

// A fact that an entry may lack; a bad value is still an error.
Result<std::int64_t> count_or(const CatalogEntry& entry, const std::string& key, std::int64_t otherwise) {
  return entry.facts.contains(key) ? count_of(entry, key) : otherwise;
}
Result<BytesPerSecond> bandwidth_or_none(const CatalogEntry& entry, const std::string& key) {
  return entry.facts.contains(key) ? entry.bytes_per_second(key) : BytesPerSecond();
}

Result<std::vector<bool>> closed_axes(const CatalogEntry& chip, const std::vector<std::int64_t>& torus) {
  const std::int64_t axis = TRY(count_or(chip, "torus.closes.axis", 0)),
                     cubes = TRY(count_or(chip, "torus.closes.cubes", 0));
  const bool all = cubes > 0 && std::ranges::all_of(torus, [&](std::int64_t side) { return side % cubes == 0; });
  std::vector<bool> closes;
  for (const std::int64_t side : torus) closes.push_back(all || side == axis);
  return closes;
}

Result<Cluster> torus_of(const CatalogEntry& chip, const ClusterOptions& options, Cluster cluster) {
  const std::int64_t per_chip = TRY(count_or(chip, "devices", 1)), dims = TRY(count_of(chip, "torus.dims"));
  const std::int64_t chips = std::max<std::int64_t>(1, options.devices / per_chip / options.slices);
  cluster.torus = options.torus.empty() ? most_even(chips, dims) : options.torus;
  const std::int64_t of_shape =
      std::accumulate(cluster.torus.begin(), cluster.torus.end(), std::int64_t{1}, std::multiplies<>());
  if (of_shape != chips) return error(ErrorKind::invalid, "a slice of {} chips in a shape of {}", chips, of_shape);
  cluster.closes = TRY(closed_axes(chip, cluster.torus));
  cluster.domain = options.devices / options.slices;
  cluster.fast = TRY(chip.bytes_per_second("link.bandwidth"));
  cluster.fast_reached = kTorusReached;
  cluster.hop = kTorusHop;
  cluster.network =
      options.network.value_or(TRY(bandwidth_or_none(chip, "dcn.bandwidth")) * (1 / static_cast<double>(per_chip)));
  return cluster;
}

}  // namespace

std::int64_t Cluster::machines() const {
  const std::int64_t each = torus.empty() ? host : domain;
  return std::max<std::int64_t>(1, (devices + each - 1) / std::max<std::int64_t>(1, each));
}

Result<Cluster> cluster_of(const CatalogEntry& chip, const ClusterOptions& options) {
  if (options.devices < 1 || options.slices < 1 || options.devices % options.slices != 0)
    return error(ErrorKind::invalid, "{} devices in {} slices", options.devices, options.slices);
  Cluster cluster;
  cluster.chip = TRY(accelerator_of(chip));
  cluster.devices = options.devices;
  cluster.host = options.host.value_or(TRY(count_or(chip, "host.devices", 1)));
  if (cluster.chip.tpu) return torus_of(chip, options, std::move(cluster));
  // A rack's links connect machines; other links end with the machine.
  cluster.domain = TRY(count_or(chip, "nvlink.domain", std::max<std::int64_t>(1, cluster.host)));
  if (options.host && cluster.domain <= 16) cluster.domain = *options.host;
  const bool linked = chip.facts.contains("nvlink.bandwidth");
  cluster.fast = TRY(chip.bytes_per_second(linked ? "nvlink.bandwidth" : "pcie.bandwidth"));
  cluster.fast_reached = kNvlinkReached;
  cluster.hop = kNvlinkHop;
  cluster.network = options.network.value_or(TRY(bandwidth_or_none(chip, "network.bandwidth")));
  if (cluster.devices > cluster.domain && !(cluster.network > BytesPerSecond())) {
    return error(ErrorKind::not_found, "the network between machines of '{}' is unknown", chip.name)
        .hinted("state its network.bandwidth, of one device, in a catalog of your own");
  }
  return cluster;
}

namespace {

// What is left of a torus axis while mesh axes are laid on the torus.
struct TorusAxis {
  std::int64_t side = 1;
  bool closes = false;
  double ways() const { return side <= 1 ? 0 : closes ? 2 : 1; }  // a closed ring carries both ways
};

// Lays a mesh axis on whole axes of the torus whose sides multiply to its size, else on parts of them, which are open.
// Returns its bandwidth, in links.
double lay(std::vector<TorusAxis>& torus, std::int64_t size) {
  std::size_t best = 0;
  double most = -1;
  const auto has = [](std::size_t set, std::size_t i) { return (set >> i & 1) != 0; };
  for (std::size_t set = 1; set < (std::size_t{1} << torus.size()); ++set) {  // at most seven
    std::int64_t product = 1;
    double ways = 0;
    for (std::size_t i = 0; i < torus.size(); ++i) {
      if (!has(set, i)) continue;
      product *= torus[i].side;
      ways += torus[i].ways();
    }
    if (product == size && ways > most) best = set, most = ways;
  }
  if (most >= 0) {
    for (std::size_t i = 0; i < torus.size(); ++i)
      if (has(best, i)) torus[i] = {};
    return std::max(1.0, most);
  }
  double ways = 0;
  for (TorusAxis& axis : torus) {
    const std::int64_t part = std::gcd(axis.side, size);
    if (part == 1) continue;
    ways += part == axis.side ? axis.ways() : 1;
    axis = {axis.side / part, false};
    size /= part;
  }
  return std::max(1.0, ways);
}

double ways_of(const Cluster& cluster, const Mesh& mesh, std::span<const std::size_t> wanted) {
  std::vector<TorusAxis> torus;
  for (std::size_t i = 0; i < cluster.torus.size(); ++i) torus.push_back({cluster.torus[i], cluster.closes[i]});
  double ways = 0;
  for (std::size_t a = mesh.axes().size(); a-- > 0;) {
    const double along = lay(torus, mesh.axes()[a].size);
    if (std::ranges::find(wanted, a) != wanted.end()) ways += along;
  }
  return std::max(1.0, ways);
}

}  // namespace

GroupLinks links_of(const Cluster& cluster, const Mesh& mesh, std::string_view axes) {
  std::vector<std::size_t> along;
  for (const std::string& axis : axes_of(axes)) along.push_back(mesh.find(axis).value());
  GroupLinks links;
  for (const std::size_t a : along) links.ranks *= mesh.axes()[a].size;
  std::int64_t inner = 1;  // devices between two neighbours of the group
  for (std::size_t a = along.empty() ? mesh.axes().size() : along.back() + 1; a < mesh.axes().size(); ++a)
    inner *= mesh.axes()[a].size;
  links.inside = std::min(links.ranks, std::max<std::int64_t>(1, cluster.domain / inner));
  const BytesPerSecond fast = cluster.torus.empty() ? cluster.fast : cluster.fast * ways_of(cluster, mesh, along);
  links.bandwidth = fast;
  // A ring over machines enters each machine once per rank there, each time through that rank's network card.
  if (links.leaves()) links.bandwidth = std::min(fast, cluster.network * static_cast<double>(links.inside));
  return links;
}

}  // namespace systole
