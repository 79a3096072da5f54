#include "execute/data/mixture_order.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ground/base/error.h"
#include "ground/base/hash.h"

namespace systole {
namespace {

__extension__ using Wide = unsigned __int128;
constexpr int kShareBits = 40;
constexpr std::uint64_t kWhole = std::uint64_t{1} << kShareBits;  // Q
constexpr std::int64_t kShortestBlock = 64, kLongestBlock = std::int64_t{1} << 20;
constexpr double kLeastBySize = 1e-200;  // far below any share that is not refused, and still above 0 per token
constexpr std::int64_t kForever = std::numeric_limits<std::int64_t>::max();

// Integers in these proportions that add up to Q: rounded down, then the largest remainders up, ties by order.
std::vector<std::uint64_t> apportioned(const std::vector<double>& shares) {
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  CHECK(std::isfinite(sum) && sum > 0, "shares that add up to {}", sum);
  std::vector<std::uint64_t> whole;
  std::vector<double> remainder;
  std::uint64_t left = kWhole;
  for (const double share : shares) {
    const double exact = share / sum * static_cast<double>(kWhole);
    whole.push_back(std::min(left, static_cast<std::uint64_t>(exact)));
    remainder.push_back(exact - std::floor(exact));
    left -= whole.back();
  }
  std::vector<std::size_t> by_remainder(shares.size());
  std::iota(by_remainder.begin(), by_remainder.end(), std::size_t{0});
  std::ranges::stable_sort(by_remainder, [&](std::size_t a, std::size_t b) { return remainder[a] > remainder[b]; });
  for (std::size_t i = 0; left > 0; i = (i + 1) % shares.size()) {
    if (shares[by_remainder[i]] == 0) continue;
    ++whole[by_remainder[i]];
    --left;
  }
  return whole;
}

// To 30 bits: libraries differ in the last bits of exp and log, and a run may go on elsewhere.
double rounded(double value) {
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(fraction, 30)), exponent - 30);
}

}  // namespace

std::int64_t MixtureOrder::Segment::drawn(std::size_t source, std::int64_t rows) const {
  const auto below = [&](std::uint64_t share) {
    return static_cast<std::int64_t>((Wide(share) * Wide(rows)) >> kShareBits);
  };
  return below(up_to[source + 1]) - below(up_to[source]);
}

MixtureOrder::MixtureOrder(std::vector<MixtureSource> sources, std::uint64_t seed)
    : sources_(std::move(sources)), first_{0}, block_seed_(hash64("systole blocks of a mixture", seed)) {
  for (const MixtureSource& source : sources_) {
    CHECK(source.rows >= 1, "a source of {} rows", source.rows);
    orders_.emplace_back(source.rows, hash64(source.name, seed), true);
    first_.push_back(first_.back() + source.rows);
  }
}

Result<MixtureOrder> MixtureOrder::make(std::vector<MixtureSource> sources, std::span<const MixturePhase> phases,
                                        Exhausted exhausted, std::uint64_t seed) {
  CHECK(!sources.empty() && !phases.empty() && phases[0].from == 0, "{} sources, {} phases", sources.size(),
        phases.size());
  MixtureOrder order(std::move(sources), seed);
  for (std::size_t i = 0; i < phases.size() && !order.end_; ++i) {
    const std::int64_t until = i + 1 < phases.size() ? phases[i + 1].from : kForever;
    CHECK(phases[i].from <= until, "a phase from row {} to {}", phases[i].from, until);
    TRY(order.add_phase(phases[i], until, exhausted));
  }
  return order;
}

// Adds the segments of a phase: one, and one more after each source that is exhausted in it.
Status MixtureOrder::add_phase(const MixturePhase& phase, std::int64_t until, Exhausted exhausted) {
  CHECK(phase.shares.size() == sources_.size(), "{} shares of {} sources", phase.shares.size(), sources_.size());
  for (std::int64_t from = phase.from; from < until;) {
    Segment segment{from, until - from, 0, {0}, {}};
    std::vector<double> shares = phase.shares;
    for (std::size_t s = 0; s < sources_.size(); ++s) {
      segment.before.push_back(
          segments_.empty() ? 0 : segments_.back().before[s] + segments_.back().drawn(s, segments_.back().length));
      const std::optional<std::int64_t>& epochs = sources_[s].epochs;
      if (epochs && segment.before[s] == *epochs * sources_[s].rows) shares[s] = 0;
    }
    if (std::ranges::all_of(shares, [](double share) { return share == 0; })) {
      CHECK(from > 0, "no source has a share");
      end_ = from;
      return {};
    }
    std::uint64_t least = kWhole;
    for (const std::uint64_t whole : apportioned(shares)) {
      segment.up_to.push_back(segment.up_to.back() + whole);
      const std::size_t s = segment.up_to.size() - 2;
      if (shares[s] > 0) least = std::min(least, whole);
      if (shares[s] > 0 && whole < 2 * kWhole / kLongestBlock)
        return error(ErrorKind::invalid, "the source '{}' is to give fewer than 1 row in {}", sources_[s].name,
                     kLongestBlock / 2)
            .hinted("a larger weight, or leave the source out");
    }
    segment.block = kShortestBlock;
    while (static_cast<std::uint64_t>(segment.block) * least < 2 * kWhole) segment.block *= 2;
    std::size_t last = sources_.size();
    segment.length = most_rows(segment, last);
    from += segment.length;
    segments_.push_back(std::move(segment));
    if (last == sources_.size()) return {};
    ended_by_ = last;
    if (exhausted == Exhausted::stop) {
      end_ = from;
      return {};
    }
  }
  return {};
}

// The rows until a source is exhausted, which is put into `exhausted`, or all.
std::int64_t MixtureOrder::most_rows(const Segment& segment, std::size_t& exhausted) const {
  std::int64_t most = segment.length;
  for (std::size_t s = 0; s < sources_.size(); ++s) {
    const std::uint64_t share = segment.up_to[s + 1] - segment.up_to[s];
    if (!sources_[s].epochs || share == 0) continue;
    // A(n) < n q / Q + 1, and A grows by at most 1 a row: the first n with A(n) >= left has A(n) = left.
    const std::int64_t left = *sources_[s].epochs * sources_[s].rows - segment.before[s];
    const Wide before = Wide(left - 1) * kWhole / share;  // may be beyond any row number
    if (before > Wide(most)) continue;
    auto rows = static_cast<std::int64_t>(before);
    while (rows < most && segment.drawn(s, rows) < left) ++rows;
    if (segment.drawn(s, rows) < left) continue;
    most = rows;
    exhausted = s;
  }
  return most;
}

const MixtureOrder::Segment& MixtureOrder::segment_at(std::int64_t position) const {
  CHECK(position >= 0 && (!end_ || position < *end_), "row {} of a mixture of {}", position, end_.value_or(0));
  return *std::prev(std::ranges::upper_bound(segments_, position, {}, &Segment::from));
}

MixtureOrder::Block MixtureOrder::block_at(const Segment& segment, std::int64_t row) {
  const std::int64_t blocks = std::max<std::int64_t>(1, segment.length / segment.block);
  const std::int64_t block = std::min(row / segment.block, blocks - 1), begin = block * segment.block;
  return {begin, block == blocks - 1 ? segment.length : begin + segment.block};
}

MixtureOrder::Drawn MixtureOrder::drawn_at(std::int64_t position) const {
  const Segment& segment = segment_at(position);
  const std::int64_t row = position - segment.from;
  const Block block = block_at(segment, row);
  const RowOrder spread(block.end - block.begin, block_seed_, true);
  std::int64_t place = spread.at(segment.from + block.begin, row - block.begin);
  for (std::size_t s = 0; s < sources_.size(); ++s) {
    const std::int64_t before = segment.drawn(s, block.begin), count = segment.drawn(s, block.end) - before;
    if (place < count) return {s, segment.before[s] + before + place};
    place -= count;
  }
  CHECK(false, "row {} of a block that holds fewer", position);
  return {};
}

MixtureOrder::Row MixtureOrder::at(std::int64_t position) const {
  const Drawn drawn = drawn_at(position);
  const std::int64_t rows = sources_[drawn.source].rows, epoch = drawn.number / rows;
  return {drawn.source, epoch, orders_[drawn.source].at(epoch, drawn.number % rows)};
}

std::int64_t MixtureOrder::joined_row(std::int64_t position) const {
  const Row row = at(position);
  return first_[row.source] + row.row;
}

std::vector<std::int64_t> MixtureOrder::drawn(std::int64_t rows) const {
  if (rows == 0) return std::vector<std::int64_t>(sources_.size());
  const Segment& segment = segment_at(rows - 1);
  const std::int64_t within = rows - segment.from;
  const Block block = block_at(segment, within - 1);
  const std::int64_t whole = within == block.end ? block.end : block.begin;
  std::vector<std::int64_t> counts;
  for (std::size_t s = 0; s < sources_.size(); ++s) counts.push_back(segment.before[s] + segment.drawn(s, whole));
  for (std::int64_t row = whole; row < within; ++row) ++counts[drawn_at(segment.from + row).source];
  return counts;
}

std::vector<double> shares_of_rows(std::span<const double> weights, std::span<const std::int64_t> units,
                                   std::span<const std::int64_t> rows) {
  std::vector<double> shares;
  for (std::size_t s = 0; s < weights.size(); ++s)
    shares.push_back(weights[s] * static_cast<double>(rows[s]) / static_cast<double>(units[s]));
  return shares;
}

std::vector<double> weights_by_size(std::span<const std::int64_t> sizes, double temperature) {
  const auto log_of = [](std::int64_t size) { return std::log(static_cast<double>(std::max<std::int64_t>(1, size))); };
  const double largest = log_of(std::ranges::max(sizes));
  std::vector<double> weights;
  for (const std::int64_t size : sizes)
    weights.push_back(std::max(kLeastBySize, rounded(std::exp((log_of(size) - largest) / temperature))));
  return weights;
}

}  // namespace systole
