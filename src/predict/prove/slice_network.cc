#include "predict/prove/slice_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>

namespace systole::prove {
namespace {

// The axes along which a group of so many chips lies: the fewest with exactly that product, or else the fewest that
// hold the group.
std::vector<SliceNetwork::Axis> axes_of(const SliceNetwork& network, std::int64_t chips) {
  std::optional<std::uint32_t> best;
  bool best_is_whole = false;
  for (std::uint32_t set = 1; set < (1U << network.axes.size()); ++set) {
    std::int64_t product = 1;
    for (std::size_t a = 0; a < network.axes.size(); ++a)
      if ((set >> a & 1U) != 0) product *= network.axes[a].chips;
    if (product < chips) continue;
    const bool whole = product == chips;
    if (!best || (whole && !best_is_whole) || (whole == best_is_whole && std::popcount(set) < std::popcount(*best)))
      best = set, best_is_whole = whole;
  }
  std::vector<SliceNetwork::Axis> axes;
  for (std::size_t a = 0; a < network.axes.size(); ++a)
    if (best && (*best >> a & 1U) != 0 && network.axes[a].chips > 1) axes.push_back(network.axes[a]);
  if (!best_is_whole && axes.size() == 1 && axes[0].chips > chips)
    axes[0] = {chips, false};  // the group is a part of it
  return axes;
}

double share(std::int64_t parts) { return static_cast<double>(parts - 1) / static_cast<double>(parts); }

}  // namespace

std::string to_string(const SliceNetwork& network) {
  std::string text = fmt::format("{} of {} at {:a} B/s, {:a} s:", network.axes.size(), network.devices_per_chip,
                                 network.link.count(), network.hop.count());
  for (const SliceNetwork::Axis& axis : network.axes) text += fmt::format(" {}{}", axis.chips, axis.closes ? "o" : "");
  return text;
}

Seconds collective_time(const SliceNetwork& network, const std::string& kind, Bytes bytes, std::int64_t group) {
  std::int64_t all = network.devices_per_chip;
  for (const SliceNetwork::Axis& axis : network.axes) all *= axis.chips;
  const std::int64_t devices = group > 0 ? std::min(group, all) : all;
  if (devices <= 1 || bytes <= Bytes(0)) return {};
  if (kind == "collective_permute") return network.hop + bytes / network.link;
  const std::int64_t chips = std::max<std::int64_t>(1, devices / network.devices_per_chip);
  const std::vector<SliceNetwork::Axis> axes = chips > 1 ? axes_of(network, chips) : std::vector<SliceNetwork::Axis>();
  // Between the devices of one chip: as fast as all of its links.
  if (axes.empty()) return bytes / (network.link * (2.0 * static_cast<double>(network.axes.size())));
  BytesPerSecond together{};
  Seconds latency{};
  std::int64_t longest = 1;
  bool closes = true;
  for (const SliceNetwork::Axis& axis : axes) {
    together = together + network.link * (axis.closes ? 2.0 : 1.0);
    latency += network.hop * static_cast<double>(axis.closes ? axis.chips / 2 : axis.chips - 1);
    if (axis.chips > longest || (axis.chips == longest && !axis.closes)) longest = axis.chips, closes = axis.closes;
  }
  if (kind == "all_to_all" || kind == "ragged_all_to_all") {
    // Half of everything crosses the middle of the longest axis, over one link per row of chips, or two if it closes.
    const double crossing = static_cast<double>(longest * network.devices_per_chip) / (closes ? 8.0 : 4.0);
    return latency + (bytes / network.link) * crossing;
  }
  const Seconds once = latency + (bytes / together) * share(devices);
  return kind == "all_reduce" ? once * 2.0 : once;
}

}  // namespace systole::prove
