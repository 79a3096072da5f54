#include "ground/mesh/collective.h"

#include <algorithm>
#include <array>
#include <bit>
#include <tuple>

namespace systole {
namespace {

constexpr std::array kKinds{CollectiveKind::all_reduce, CollectiveKind::reduce_scatter,     CollectiveKind::all_gather,
                            CollectiveKind::all_to_all, CollectiveKind::collective_permute, CollectiveKind::broadcast};
constexpr std::array kAlgorithms{CollectiveAlgorithm::ring, CollectiveAlgorithm::recursive_halving_doubling,
                                 CollectiveAlgorithm::direct, CollectiveAlgorithm::binomial_tree,
                                 CollectiveAlgorithm::hierarchical};

// Collects the transfers of one collective. Ranks and chunks are modulo n.
class Plotter {
 public:
  explicit Plotter(const Collective& collective) : collective_(collective), n_(collective.num_ranks()) {}

  // Sends the adjacent chunks [first, last), at the same place on both sides.
  void send(int step, std::int64_t from, std::int64_t to, std::int64_t first, std::int64_t last, bool reduce) {
    const Bytes begin = chunk_of(collective_, first).begin, end = chunk_of(collective_, last - 1).end;
    add({step, rank(from), rank(to), end - begin, reduce, begin, begin});
  }
  void send_chunk(int step, std::int64_t from, std::int64_t to, std::int64_t chunk, bool reduce) {
    const std::int64_t c = wrapped(chunk);
    send(step, wrapped(from), wrapped(to), c, c + 1, reduce);
  }
  void add(const Transfer& transfer) {
    if (transfer.bytes > Bytes{}) transfers_.push_back(transfer);
  }
  std::int64_t n() const { return n_; }
  const Collective& collective() const { return collective_; }

  std::vector<Transfer> take() {
    std::ranges::sort(transfers_, {},
                      [](const Transfer& t) { return std::tuple(t.step, t.from, t.from_offset, t.to); });
    return std::move(transfers_);
  }

 private:
  std::int64_t wrapped(std::int64_t i) const { return ((i % n_) + n_) % n_; }
  static std::int32_t rank(std::int64_t r) { return static_cast<std::int32_t>(r); }
  const Collective& collective_;
  std::int64_t n_;
  std::vector<Transfer> transfers_;
};

// After n-1 steps rank r holds the sum of chunk r. Chunk r starts at rank r+1.
int ring_reduce_scatter(Plotter& plot, int step) {
  const int last = step + static_cast<int>(plot.n()) - 1;
  for (std::int64_t s = 1; step < last; ++step, ++s) {
    for (std::int64_t r = 0; r < plot.n(); ++r) plot.send_chunk(step, r, r + 1, r - s, true);
  }
  return step;
}

// Chunk r starts at rank r.
int ring_all_gather(Plotter& plot, int step) {
  const int last = step + static_cast<int>(plot.n()) - 1;
  for (std::int64_t s = 0; step < last; ++step, ++s) {
    for (std::int64_t r = 0; r < plot.n(); ++r) plot.send_chunk(step, r, r + 1, r - s, false);
  }
  return step;
}

// All pairs in one step.
void direct_reduce_scatter(Plotter& plot) {
  for (std::int64_t s = 1; s < plot.n(); ++s) {
    for (std::int64_t r = 0; r < plot.n(); ++r) plot.send_chunk(0, r, r + s, r + s, true);
  }
}

void direct_all_gather(Plotter& plot, int step) {
  for (std::int64_t s = 1; s < plot.n(); ++s) {
    for (std::int64_t r = 0; r < plot.n(); ++r) plot.send_chunk(step, r, r + s, r, false);
  }
}

void direct_all_to_all(Plotter& plot) {
  for (std::int64_t from = 0; from < plot.n(); ++from) {
    for (std::int64_t to = 0; to < plot.n(); ++to) {
      const ByteSpan source = chunk_of(plot.collective(), to), target = chunk_of(plot.collective(), from);
      if (from == to) continue;  // a local copy, not a transfer
      plot.add({0, static_cast<std::int32_t>(from), static_cast<std::int32_t>(to), source.end - source.begin, false,
                source.begin, target.begin});
    }
  }
}

void direct_permute(Plotter& plot) {
  const std::int64_t n = plot.n(), by = (plot.collective().by % n + n) % n;
  if (by == 0) return;  // a local copy
  for (std::int64_t r = 0; r < n; ++r) plot.send(0, r, (r + by) % n, 0, n, false);
}

// For a non-power-of-two n, ranks p.. first fold into the lowest ranks. The remaining p = 2^k ranks halve their blocks
// k times (reduce-scatter) and double them k times (all-gather); then the folded ranks get the result.
void halving_doubling(Plotter& plot) {
  const std::int64_t n = plot.n(), p = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(n)));
  int step = 0;
  for (std::int64_t r = p; r < n; ++r) plot.send(step, r, r - p, 0, n, true);
  if (p < n) ++step;

  // A block is one of p groups of chunks; block b begins at chunk b·n/p.
  const auto first = [&](std::int64_t block) { return block * n / p; };
  for (std::int64_t half = p / 2; half >= 1; half /= 2, ++step) {
    for (std::int64_t r = 0; r < p; ++r) {
      const std::int64_t partner = r ^ half, begin = partner & ~(half - 1);  // the partner's half
      plot.send(step, r, partner, first(begin), first(begin + half), true);
    }
  }
  for (std::int64_t half = 1; half < p; half *= 2, ++step) {
    for (std::int64_t r = 0; r < p; ++r) {
      const std::int64_t begin = r & ~(half - 1);  // this rank's blocks
      plot.send(step, r, r ^ half, first(begin), first(begin + half), false);
    }
  }
  for (std::int64_t r = p; r < n; ++r) plot.send(step, r - p, r, 0, n, false);
}

// A grid of `outer` times `inner` ranks: rank (o, i) has number o·inner + i, and so has chunk (o, i).
struct Levels {
  explicit Levels(const Plotter& plot)
      : outer(plot.collective().axis_sizes.empty() ? 1 : plot.collective().axis_sizes.front()),
        inner(plot.n() / outer) {}
  // Calls `visit(from, to)` for each pair of ranks that differ in only one level.
  template <typename Visit>
  void pairs_within(const Visit& visit) const {
    for (std::int64_t r = 0; r < outer * inner; ++r) {
      for (std::int64_t i = 0; i < inner; ++i) {
        if (i != r % inner) visit(r, r / inner * inner + i);
      }
    }
  }
  template <typename Visit>
  void pairs_across(const Visit& visit) const {
    for (std::int64_t r = 0; r < outer * inner; ++r) {
      for (std::int64_t o = 0; o < outer; ++o) {
        if (o != r / inner) visit(r, o * inner + r % inner);
      }
    }
  }
  std::int64_t outer, inner;
};

// Rank (o, i) owns region i, which is `outer` adjacent chunks, and in it the o-th chunk.
void hierarchical_all_reduce(Plotter& plot) {
  const Levels levels(plot);
  const auto region = [&](int step, std::int64_t from, std::int64_t to, std::int64_t of, bool reduce) {
    const std::int64_t first = of % levels.inner * levels.outer;
    plot.send(step, from, to, first, first + levels.outer, reduce);
  };
  const auto chunk = [&](std::int64_t of) { return of % levels.inner * levels.outer + of / levels.inner; };
  levels.pairs_within([&](std::int64_t from, std::int64_t to) { region(0, from, to, to, true); });
  levels.pairs_across([&](std::int64_t from, std::int64_t to) { plot.send_chunk(1, from, to, chunk(to), true); });
  levels.pairs_across([&](std::int64_t from, std::int64_t to) { plot.send_chunk(2, from, to, chunk(from), false); });
  levels.pairs_within([&](std::int64_t from, std::int64_t to) { region(3, from, to, from, false); });
}

// Step 0, within the inner axis: for each outer index, the chunk with the receiver's inner index.
void hierarchical_reduce_scatter(Plotter& plot) {
  const Levels levels(plot);
  levels.pairs_within([&](std::int64_t from, std::int64_t to) {
    for (std::int64_t o = 0; o < levels.outer; ++o)
      plot.send_chunk(0, from, to, o * levels.inner + to % levels.inner, true);
  });
  levels.pairs_across([&](std::int64_t from, std::int64_t to) { plot.send_chunk(1, from, to, to, true); });
}

void hierarchical_all_gather(Plotter& plot) {
  const Levels levels(plot);
  levels.pairs_across([&](std::int64_t from, std::int64_t to) { plot.send_chunk(0, from, to, from, false); });
  levels.pairs_within([&](std::int64_t from, std::int64_t to) {
    for (std::int64_t o = 0; o < levels.outer; ++o)
      plot.send_chunk(1, from, to, o * levels.inner + from % levels.inner, false);
  });
}

// Step s: each rank below 2^s that has the data sends to the rank 2^s further.
void binomial_broadcast(Plotter& plot) {
  int step = 0;
  for (std::int64_t have = 1; have < plot.n(); have *= 2, ++step) {
    for (std::int64_t r = 0; r < have && r + have < plot.n(); ++r) plot.send(step, r, r + have, 0, plot.n(), false);
  }
}

void direct_broadcast(Plotter& plot) {
  for (std::int64_t r = 1; r < plot.n(); ++r) plot.send(0, 0, r, 0, plot.n(), false);
}

Status check(const Collective& c) {
  const std::int64_t n = c.num_ranks();
  if (c.bytes < Bytes{} || c.grain < Bytes{1} || c.bytes.count() % c.grain.count() != 0) {
    return error(ErrorKind::invalid, "{} of {} bytes: no whole number of elements of {} bytes", name_of(c.kind),
                 c.bytes.count(), c.grain.count());
  }
  if (c.kind == CollectiveKind::all_to_all && (c.bytes.count() / c.grain.count()) % n != 0) {
    return error(ErrorKind::invalid, "all_to_all of {} elements among {} ranks: the chunks would differ",
                 c.bytes.count() / c.grain.count(), n);
  }
  return Done{};
}

void plot_all_reduce(Plotter& plot, CollectiveAlgorithm algorithm) {
  switch (algorithm) {
    case CollectiveAlgorithm::ring: ring_all_gather(plot, ring_reduce_scatter(plot, 0)); return;
    case CollectiveAlgorithm::recursive_halving_doubling: halving_doubling(plot); return;
    case CollectiveAlgorithm::hierarchical: hierarchical_all_reduce(plot); return;
    default: direct_reduce_scatter(plot), direct_all_gather(plot, 1); return;
  }
}

void plot_with(Plotter& plot, CollectiveKind kind, CollectiveAlgorithm algorithm) {
  const bool ring = algorithm == CollectiveAlgorithm::ring, direct = algorithm == CollectiveAlgorithm::direct;
  switch (kind) {
    case CollectiveKind::all_reduce: plot_all_reduce(plot, algorithm); return;
    case CollectiveKind::reduce_scatter:
      if (ring)
        ring_reduce_scatter(plot, 0);
      else if (direct)
        direct_reduce_scatter(plot);
      else
        hierarchical_reduce_scatter(plot);
      return;
    case CollectiveKind::all_gather:
      if (ring)
        ring_all_gather(plot, 0);
      else if (direct)
        direct_all_gather(plot, 0);
      else
        hierarchical_all_gather(plot);
      return;
    case CollectiveKind::all_to_all: direct_all_to_all(plot); return;
    case CollectiveKind::collective_permute: direct_permute(plot); return;
    case CollectiveKind::broadcast:
      if (direct)
        direct_broadcast(plot);
      else
        binomial_broadcast(plot);
      return;
  }
}

}  // namespace

const char* name_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce: return "all_reduce";
    case CollectiveKind::reduce_scatter: return "reduce_scatter";
    case CollectiveKind::all_gather: return "all_gather";
    case CollectiveKind::all_to_all: return "all_to_all";
    case CollectiveKind::collective_permute: return "collective_permute";
    case CollectiveKind::broadcast: return "broadcast";
  }
  return "unknown";
}

const char* name_of(CollectiveAlgorithm algorithm) {
  switch (algorithm) {
    case CollectiveAlgorithm::ring: return "ring";
    case CollectiveAlgorithm::recursive_halving_doubling: return "recursive_halving_doubling";
    case CollectiveAlgorithm::direct: return "direct";
    case CollectiveAlgorithm::binomial_tree: return "binomial_tree";
    case CollectiveAlgorithm::hierarchical: return "hierarchical";
  }
  return "unknown";
}

std::optional<CollectiveKind> collective_named(std::string_view name) {
  for (const CollectiveKind kind : kKinds) {
    if (name == name_of(kind)) return kind;
  }
  return std::nullopt;
}

std::optional<CollectiveAlgorithm> collective_algorithm_named(std::string_view name) {
  for (const CollectiveAlgorithm algorithm : kAlgorithms) {
    if (name == name_of(algorithm)) return algorithm;
  }
  return std::nullopt;
}

std::vector<CollectiveAlgorithm> algorithms_of(CollectiveKind kind) {
  using enum CollectiveAlgorithm;
  switch (kind) {
    case CollectiveKind::all_reduce: return {direct, ring, recursive_halving_doubling, hierarchical};
    case CollectiveKind::reduce_scatter: return {direct, ring, hierarchical};
    case CollectiveKind::all_gather: return {direct, ring, hierarchical};
    case CollectiveKind::all_to_all:
    case CollectiveKind::collective_permute: return {direct};
    case CollectiveKind::broadcast: return {binomial_tree, direct};
  }
  return {};
}

std::int64_t Collective::num_ranks() const {
  std::int64_t n = 1;
  for (const std::int64_t size : axis_sizes) n *= size;
  return n;
}

ByteSpan chunk_of(const Collective& collective, std::int64_t i) {
  const std::int64_t n = collective.num_ranks(), grains = collective.bytes.count() / collective.grain.count();
  CHECK(i >= 0 && i < n, "chunk {} of {}", i, n);
  // Split into quotient and remainder, so that no product overflows 63 bits.
  const auto begin = [&](std::int64_t k) { return (grains / n * k + grains % n * k / n) * collective.grain; };
  return {begin(i), begin(i + 1)};
}

static Status carries_out(CollectiveAlgorithm algorithm, CollectiveKind kind) {
  const std::vector<CollectiveAlgorithm> known = algorithms_of(kind);
  if (std::ranges::find(known, algorithm) != known.end()) return Done{};
  std::vector<std::string> names;
  for (const CollectiveAlgorithm a : known) names.push_back(name_of(a));
  return error(ErrorKind::unsupported, "{} does not carry out {}", name_of(algorithm), name_of(kind))
      .hinted(fmt::format("{} can: {}", name_of(kind), fmt::join(names, ", ")));
}

Result<std::vector<Transfer>> transfers_of(const Collective& collective, CollectiveAlgorithm algorithm) {
  TRY(carries_out(algorithm, collective.kind));
  TRY(check(collective));
  Plotter plot(collective);
  if (plot.n() > 1) plot_with(plot, collective.kind, algorithm);
  return plot.take();
}

Bytes bytes_sent(const std::vector<Transfer>& transfers, std::int32_t rank) {
  Bytes sum{};
  for (const Transfer& t : transfers) {
    if (t.from == rank) sum += t.bytes;
  }
  return sum;
}

Result<Bytes> bytes_sent(const Collective& collective, CollectiveAlgorithm algorithm, std::int32_t rank) {
  using enum CollectiveAlgorithm;
  const std::int64_t n = collective.num_ranks();
  if (n == 1) return Bytes{};
  if (algorithm != ring && algorithm != direct) return bytes_sent(TRY(transfers_of(collective, algorithm)), rank);
  TRY(carries_out(algorithm, collective.kind));
  TRY(check(collective));
  const auto chunk = [&](std::int64_t i) {
    const ByteSpan span = chunk_of(collective, i % n);
    return span.end - span.begin;
  };
  // Scatter: every chunk but the rank's own. Gather: its own chunk to all others (direct), or all chunks but its
  // successor's (ring).
  const Bytes scattered = collective.bytes - chunk(rank);
  const Bytes gathered = algorithm == ring ? collective.bytes - chunk(rank + 1) : chunk(rank) * (n - 1);
  switch (collective.kind) {
    case CollectiveKind::all_reduce: return scattered + gathered;
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_to_all: return scattered;
    case CollectiveKind::all_gather: return gathered;
    case CollectiveKind::collective_permute: return collective.by % n == 0 ? Bytes{} : collective.bytes;
    case CollectiveKind::broadcast: return rank == 0 ? collective.bytes * (n - 1) : Bytes{};
  }
  return Bytes{};
}

}  // namespace systole
