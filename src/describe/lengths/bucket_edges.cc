#include "describe/lengths/bucket_edges.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "ground/base/result.h"

namespace systole {
namespace {

// The edges to choose among, and the rows up to each.
struct Candidates {
  std::vector<std::int64_t> edges;
  std::vector<double> rows{0};  // rows[i + 1]: up to edges[i]
  std::vector<double> cost;     // of one row
};

Candidates candidates_of(const LengthHistogram& rows, const EdgeRequest& request) {
  Candidates all;
  double seen = 0;
  for (const auto& [length, count] : rows.counts()) {
    std::int64_t edge = (length + request.align - 1) / request.align * request.align;
    if (request.longest > 0) edge = std::min(edge, request.longest);
    seen += static_cast<double>(count);
    if (all.edges.empty() || all.edges.back() != edge) {
      all.edges.push_back(edge);
      all.rows.push_back(0);
    }
    all.rows.back() = seen;
  }
  for (const std::int64_t edge : all.edges)
    all.cost.push_back(request.cost ? request.cost(edge) : static_cast<double>(edge));
  return all;
}

// One more shape than the layer before: best[j] is the least cost of all rows up to candidate j - 1.
class Layer {
 public:
  Layer(const Candidates& all, const std::vector<double>& before)
      : all_(all), before_(before), best(before.size(), 0), split(before.size(), 0) {
    solve(1, before.size() - 1, 0, before.size() - 2);
  }

 private:
  const Candidates& all_;
  const std::vector<double>& before_;

  double at(std::size_t i, std::size_t j) const {
    return before_[i] + all_.cost[j - 1] * (all_.rows[j] - all_.rows[i]);
  }
  // For j of [from, to], whose best splits are in [low, high].
  void solve(std::size_t from, std::size_t to, std::size_t low, std::size_t high) {
    if (from > to) return;
    const std::size_t j = (from + to) / 2;
    best[j] = std::numeric_limits<double>::infinity();
    for (std::size_t i = low; i <= std::min(high, j - 1); ++i) {
      if (const double cost = at(i, j); cost < best[j]) {
        best[j] = cost;
        split[j] = static_cast<std::uint32_t>(i);
      }
    }
    solve(from, j - 1, low, split[j]);
    solve(j + 1, to, split[j], high);
  }

 public:
  std::vector<double> best;
  std::vector<std::uint32_t> split;
};

}  // namespace

double padding_share(std::int64_t tokens, std::int64_t positions) {
  return positions == 0 ? 0 : static_cast<double>(positions - tokens) / static_cast<double>(positions);
}

double padding_share(std::span<const Bucket> buckets) {
  std::int64_t tokens = 0, positions = 0;
  for (const Bucket& bucket : buckets) {
    tokens += bucket.tokens;
    positions += bucket.positions();
  }
  return padding_share(tokens, positions);
}

std::vector<Bucket> buckets_of(const LengthHistogram& rows, std::span<const std::int64_t> edges) {
  CHECK(rows.count() == 0 || (!edges.empty() && edges.back() >= rows.longest()), "rows of {} are in no bucket",
        rows.longest());
  std::vector<Bucket> buckets;
  for (const std::int64_t edge : edges) buckets.push_back({edge});
  std::size_t at = 0;
  for (const auto& [length, count] : rows.counts()) {
    while (buckets[at].edge < length) ++at;
    buckets[at].rows += count;
    buckets[at].tokens += length * count;
  }
  return buckets;
}

std::int64_t buckets_holding(std::span<const Bucket> buckets, double share) {
  std::vector<std::int64_t> rows;
  std::int64_t all = 0;
  for (const Bucket& bucket : buckets) {
    rows.push_back(bucket.rows);
    all += bucket.rows;
  }
  std::ranges::sort(rows, std::ranges::greater());
  std::int64_t held = 0, used = 0;
  while (static_cast<double>(held) < share * static_cast<double>(all)) held += rows[static_cast<std::size_t>(used++)];
  return used;
}

std::vector<std::int64_t> best_edges(const LengthHistogram& rows, const EdgeRequest& request) {
  CHECK(request.shapes >= 1 && request.align >= 1, "{} shapes, aligned to {}", request.shapes, request.align);
  CHECK(request.longest == 0 || rows.longest() <= request.longest, "a row of {}", rows.longest());
  const Candidates all = candidates_of(rows, request);
  const std::size_t n = all.edges.size();
  // Before the first shape only the empty prefix is covered.
  std::vector<double> before(n + 1, std::numeric_limits<double>::infinity());
  before[0] = 0;
  std::vector<std::vector<std::uint32_t>> splits;
  std::vector<std::int64_t> edges;
  const auto most = static_cast<std::size_t>(std::min<std::int64_t>(request.shapes, static_cast<std::int64_t>(n)));
  while (splits.size() < most) {
    Layer layer(all, before);
    if (!splits.empty() && !(layer.best[n] < before[n])) break;
    before = std::move(layer.best);
    before[0] = 0;
    splits.push_back(std::move(layer.split));
    edges.clear();
    std::size_t j = n;
    for (std::size_t k = splits.size(); k-- > 0 && j > 0; j = splits[k][j]) edges.push_back(all.edges[j - 1]);
    std::ranges::reverse(edges);
    if (request.waste && padding_share(buckets_of(rows, edges)) <= *request.waste) break;
  }
  return edges;
}

std::vector<std::int64_t> power_of_two_edges(const LengthHistogram& rows, std::int64_t align, std::int64_t longest) {
  std::vector<std::int64_t> edges;
  for (const auto& [length, count] : rows.counts()) {
    const auto power = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(std::max(length, align))));
    const std::int64_t edge = longest > 0 ? std::min(power, longest) : power;
    if (edges.empty() || edges.back() != edge) edges.push_back(edge);
  }
  return edges;
}

}  // namespace systole
