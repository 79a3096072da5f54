#include "ground/mesh/collective_cost.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>

#include "ground/base/result.h"

namespace systole {
namespace {

using Algorithm = CollectiveAlgorithm;

Seconds step_cost(const LinkCost& link, std::int64_t messages, double bytes) {
  return Seconds(link.latency.count() * (1 + static_cast<double>(messages - 1) / 8) + bytes / link.bandwidth.count());
}

// The cost of one step in which each of `ranks` sends `strips` messages of `bytes` to each other rank.
Seconds all_to_all_step(const LinkCost& link, std::int64_t ranks, double bytes, std::int64_t strips = 1) {
  if (ranks == 1) return Seconds(0);
  const std::int64_t messages = (ranks - 1) * strips;
  return step_cost(link, messages, static_cast<double>(messages) * bytes);
}

LinkCost slowest(std::span<const LinkCost> links) {
  LinkCost worst = links.front();
  for (const LinkCost& link : links) {
    worst.latency = std::max(worst.latency, link.latency);
    worst.bandwidth = std::min(worst.bandwidth, link.bandwidth);
  }
  return worst;
}

// All-gather or reduce-scatter over the inner axis and the outer one. In all_reduce the chunks from one rank to another
// are adjacent, hence one message.
Seconds hierarchical(const Collective& c, std::span<const LinkCost> links, double chunk) {
  const std::int64_t outer = c.axis_sizes.empty() ? 1 : c.axis_sizes.front(), inner = c.num_ranks() / outer;
  const LinkCost across = links.front();
  const LinkCost within = slowest(links.size() > 1 ? links.subspan(1) : links);
  const bool both = c.kind == CollectiveKind::all_reduce;
  const Seconds half = (both ? all_to_all_step(within, inner, chunk * static_cast<double>(outer))
                             : all_to_all_step(within, inner, chunk, outer)) +
                       all_to_all_step(across, outer, chunk);
  return half * (both ? 2 : 1);
}

Seconds halving_doubling(const LinkCost& link, std::int64_t n, double bytes) {
  const std::int64_t p = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(n)));
  Seconds half = p < n ? step_cost(link, 1, bytes) : Seconds(0);
  for (std::int64_t part = 2; part <= p; part *= 2) half += step_cost(link, 1, bytes / static_cast<double>(part));
  return half * 2;
}

bool must_round_once(const Collective& c, DType dtype) {
  return (c.kind == CollectiveKind::all_reduce || c.kind == CollectiveKind::reduce_scatter) &&
         (dtype == DType::bf16 || dtype == DType::f16);
}

}  // namespace

Seconds cost_of(const std::vector<Transfer>& transfers, const LinkCost& link) {
  struct Load {
    std::int64_t messages = 0, bytes = 0;
  };
  Seconds sum{};
  for (std::size_t i = 0; i < transfers.size();) {
    std::map<std::pair<bool, std::int32_t>, Load> loads;  // per rank, as sender and as receiver
    for (const int step = transfers[i].step; i < transfers.size() && transfers[i].step == step; ++i) {
      for (Load* load : {&loads[{true, transfers[i].from}], &loads[{false, transfers[i].to}]}) {
        ++load->messages;
        load->bytes += transfers[i].bytes.count();
      }
    }
    Load most;
    for (const auto& [rank, load] : loads)
      most = {std::max(most.messages, load.messages), std::max(most.bytes, load.bytes)};
    sum += step_cost(link, most.messages, static_cast<double>(most.bytes));
  }
  return sum;
}

Seconds cost_of(const Collective& c, Algorithm algorithm, std::span<const LinkCost> links) {
  CHECK(!links.empty(), "a {} without links", name_of(c.kind));
  const std::int64_t n = c.num_ranks();
  if (n <= 1 || c.bytes == Bytes{}) return Seconds(0);
  const LinkCost link = slowest(links);
  const double bytes = static_cast<double>(c.bytes.count()), chunk = bytes / static_cast<double>(n);
  const int halves = c.kind == CollectiveKind::all_reduce ? 2 : 1;
  const bool spread = c.kind == CollectiveKind::broadcast;
  if (c.kind == CollectiveKind::collective_permute) return c.by % n == 0 ? Seconds(0) : step_cost(link, 1, bytes);
  switch (algorithm) {
    case Algorithm::ring: return step_cost(link, 1, chunk) * (n - 1) * halves;
    case Algorithm::direct: return all_to_all_step(link, n, spread ? bytes : chunk) * halves;
    case Algorithm::recursive_halving_doubling: return halving_doubling(link, n, bytes);
    case Algorithm::binomial_tree: return step_cost(link, 1, bytes) * std::bit_width(static_cast<std::uint64_t>(n - 1));
    case Algorithm::hierarchical: return hierarchical(c, links, chunk);
  }
  CHECK(false, "an algorithm without a cost");
  return Seconds(0);
}

Algorithm choose_algorithm(const Collective& c, DType dtype, std::span<const LinkCost> links) {
  if (must_round_once(c, dtype)) return Algorithm::direct;
  const auto big = [](std::int64_t size) { return size > 1; };
  const bool levels = c.axis_sizes.size() > 1 && big(c.axis_sizes.front()) && big(c.num_ranks() / c.axis_sizes.front());
  const std::vector<Algorithm> known = algorithms_of(c.kind);
  std::optional<Algorithm> best;
  for (const Algorithm algorithm : known) {
    if (algorithm == Algorithm::hierarchical && !levels) continue;
    if (algorithm == Algorithm::direct && known.size() > 1 && c.num_ranks() > kMostDirectRanks) continue;
    if (!best || cost_of(c, algorithm, links) < cost_of(c, *best, links)) best = algorithm;
  }
  return *best;
}

Algorithm choose_algorithm(const Collective& c, DType dtype, Seconds latency, BytesPerSecond bandwidth) {
  return choose_algorithm(c, dtype, std::array{LinkCost{latency, bandwidth}});
}

}  // namespace systole
