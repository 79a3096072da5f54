#include "execute/data/mixture_order.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "ground/base/philox.h"

namespace systole {
namespace {

struct Case {
  std::vector<MixtureSource> sources;
  std::vector<MixturePhase> phases;
  Exhausted exhausted = Exhausted::repeat;
  MixtureOrder order(std::uint64_t seed = 7) const {
    return MixtureOrder::make(sources, phases, exhausted, seed).value();
  }
};

Case drawn_case(PhiloxStream& random, Exhausted exhausted) {
  Case drawn{{}, {}, exhausted};
  const std::size_t count = 1 + random.below(5);
  for (std::size_t s = 0; s < count; ++s) {
    MixtureSource source{
        std::string(1, static_cast<char>('a' + s)), 1 + static_cast<std::int64_t>(random.below(300)), {}};
    if (exhausted != Exhausted::repeat && random.below(2) == 0)
      source.epochs = 1 + static_cast<std::int64_t>(random.below(3));
    drawn.sources.push_back(source);
  }
  std::int64_t from = 0;
  for (std::uint64_t left = 1 + random.below(3); left > 0; --left) {
    MixturePhase phase{from, {}};
    for (std::size_t s = 0; s < count; ++s)
      phase.shares.push_back(random.below(5) == 0 ? 0 : 0.05 + static_cast<double>(random.below(1000)) / 100);
    phase.shares[random.below(count)] = 1;
    drawn.phases.push_back(phase);
    from += 1 + static_cast<std::int64_t>(random.below(400));
  }
  return drawn;
}

// What each source has drawn after each row if every row is given to one source by running totals, without blocks: at
// the ends of blocks the mixture must have drawn the same. A new total begins with a phase and when a source ends.
struct ByRow {
  std::vector<std::vector<std::int64_t>> drawn;  // [row][source], after it
  bool ended = false;
};
ByRow row_by_row(const Case& of, std::int64_t rows) {
  ByRow result;
  const std::size_t count = of.sources.size();
  std::vector<std::int64_t> total(count), at_start(count);
  std::vector<double> shares;
  std::int64_t start = 0;
  std::size_t next_phase = 0, phase = 0;
  const auto spent = [&](std::size_t s) {
    return of.sources[s].epochs && total[s] == *of.sources[s].epochs * of.sources[s].rows;
  };
  bool begin = true;
  for (std::int64_t row = 0; row < rows; ++row) {
    if (next_phase < of.phases.size() && of.phases[next_phase].from == row) {
      phase = next_phase++;
      begin = true;
    }
    if (begin) {
      shares = of.phases[phase].shares;
      for (std::size_t s = 0; s < count; ++s)
        if (spent(s)) shares[s] = 0;
      const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
      if (sum == 0) {
        result.ended = true;
        return result;
      }
      for (double& share : shares) share /= sum;
      at_start = total;
      start = row;
      begin = false;
    }
    const double done = static_cast<double>(row + 1 - start);
    double below = 0;
    std::int64_t last = 0;
    for (std::size_t s = 0; s < count; ++s) {
      below += shares[s];
      const auto up_to = s + 1 == count ? row + 1 - start : static_cast<std::int64_t>(std::floor(done * below + 1e-7));
      total[s] = at_start[s] + up_to - last;
      last = up_to;
    }
    result.drawn.push_back(total);
    for (std::size_t s = 0; s < count; ++s) begin = begin || (shares[s] > 0 && spent(s));
    if (begin && of.exhausted == Exhausted::stop) {
      result.ended = true;
      return result;
    }
  }
  return result;
}

TEST(MixtureOrder, SharesAreExactWithinARowAtEveryBlock) {
  const Case three{{{"a", 100, {}}, {"b", 17, {}}, {"c", 1000, {}}}, {{0, {0.5, 0.3, 0.2}}}, Exhausted::repeat};
  const MixtureOrder order = three.order();
  std::vector<std::int64_t> counts(3);
  for (std::int64_t row = 0; row < 20'000; ++row) {
    ++counts[order.at(row).source];
    if ((row + 1) % 64 != 0) continue;
    for (std::size_t s = 0; s < 3; ++s)
      ASSERT_LT(std::abs(static_cast<double>(counts[s]) - static_cast<double>(row + 1) * three.phases[0].shares[s]),
                1.001)
          << row << " " << s;
  }
}

TEST(MixtureOrder, EqualsCountingRowByRow) {
  PhiloxStream random(11);
  int ended = 0, exhausted = 0;
  for (int i = 0; i < 150; ++i) {
    const Case of = drawn_case(random, static_cast<Exhausted>(i % 3));
    SCOPED_TRACE(i);
    constexpr std::int64_t kRows = 3000;
    const ByRow slow = row_by_row(of, kRows);
    const MixtureOrder order = of.order();
    const auto rows = static_cast<std::int64_t>(slow.drawn.size());
    if (slow.ended) {
      ++ended;
      ASSERT_EQ(order.end(), rows);
    } else if (order.end()) {
      ASSERT_GT(*order.end(), kRows - 1);
    }
    std::vector<std::int64_t> counts(of.sources.size());
    std::vector<std::map<std::int64_t, std::set<std::int64_t>>> seen(of.sources.size());
    for (std::int64_t row = 0; row < rows; ++row) {
      const MixtureOrder::Row at = order.at(row);
      ++counts[at.source];
      ASSERT_TRUE(seen[at.source][at.epoch].insert(at.row).second) << "row " << at.row << " twice in an epoch";
      ASSERT_LT(at.row, of.sources[at.source].rows);
      if (row % 97 == 0 || row + 1 == rows) { ASSERT_EQ(order.drawn(row + 1), counts); }
    }
    // In the end, which is one of a block where the mixture ends: exactly, and each row as often as the source has epochs.
    if (!slow.ended) continue;
    EXPECT_EQ(counts, slow.drawn.back());
    for (std::size_t s = 0; s < of.sources.size(); ++s) {
      const MixtureSource& source = of.sources[s];
      if (!source.epochs) continue;
      ASSERT_LE(counts[s], *source.epochs * source.rows);
      if (counts[s] < *source.epochs * source.rows) continue;
      ++exhausted;
      for (std::int64_t epoch = 0; epoch < *source.epochs; ++epoch)
        EXPECT_EQ(static_cast<std::int64_t>(seen[s][epoch].size()), source.rows);
    }
  }
  EXPECT_GT(ended, 20);
  EXPECT_GT(exhausted, 20);
}

TEST(MixtureOrder, AtTheEndsOfBlocksTheSameAsRowByRow) {
  PhiloxStream random(12);
  for (int i = 0; i < 40; ++i) {
    Case of = drawn_case(random, Exhausted::repeat);
    of.phases.resize(1);
    for (double& share : of.phases[0].shares) share = std::max(share, 1.0);  // so that blocks have at most 512 rows
    const ByRow slow = row_by_row(of, 5120);
    const MixtureOrder order = of.order();
    for (std::int64_t row = 512; row <= 5120; row += 512)
      ASSERT_EQ(order.drawn(row), slow.drawn[static_cast<std::size_t>(row - 1)]) << i << " " << row;
  }
}

TEST(MixtureOrder, StopsWithTheLastRowOfTheFirst) {
  // One row in four is of b, the first of four: its 2 x 10 rows end with row 77.
  const Case stops{{{"a", 100, {}}, {"b", 10, 2}}, {{0, {3, 1}}}, Exhausted::stop};
  const MixtureOrder order = stops.order();
  EXPECT_EQ(order.end(), 77);
  EXPECT_EQ(order.ended_by(), 1u);
  EXPECT_EQ(order.drawn(77), (std::vector<std::int64_t>{57, 20}));
  const Case goes_on{stops.sources, stops.phases, Exhausted::rescale};
  EXPECT_EQ(goes_on.order().end(), std::nullopt);
  EXPECT_EQ(goes_on.order().drawn(1000), (std::vector<std::int64_t>{980, 20}));
  const Case both{{{"a", 100, 1}, {"b", 10, 2}}, stops.phases, Exhausted::rescale};
  EXPECT_EQ(both.order().end(), 120);
  EXPECT_EQ(both.order().ended_by(), 0u);
}

TEST(MixtureOrder, ALimitBeyondEveryRowIsNone) {
  constexpr std::int64_t kMany = std::int64_t{1} << 34;
  const Case huge{{{"a", kMany, 1'000'000}, {"b", 10, {}}}, {{0, {1, 400'000}}}, Exhausted::rescale};
  EXPECT_EQ(huge.order().end(), std::nullopt);
  EXPECT_EQ(huge.order().at(kMany * 1000).source, 1u);
  // Shares are integers out of 2^40, so after as many rows they are off by a row at most.
  EXPECT_NEAR(static_cast<double>(huge.order().drawn(std::int64_t{1} << 40)[0]), std::ldexp(1, 40) / 400'001, 1.5);
}

TEST(MixtureOrder, OfASourceItsRowsDoNotDependOnTheOthers) {
  const Case two{{{"a", 50, {}}, {"b", 70, {}}}, {{0, {1, 1}}}, Exhausted::repeat};
  const Case three{{{"new", 10, {}}, {"a", 50, {}}, {"b", 70, {}}}, {{0, {1, 1, 1}}}, Exhausted::repeat};
  // Both have drawn 64 rows of b there, at the ends of blocks.
  const auto rows_of_b = [](const MixtureOrder& order, std::size_t source, std::int64_t rows) {
    std::set<std::int64_t> seen;
    for (std::int64_t row = 0; row < rows; ++row)
      if (const auto at = order.at(row); at.source == source) seen.insert(at.row);
    return seen;
  };
  EXPECT_EQ(rows_of_b(two.order(), 1, 128).size(), 64u);
  EXPECT_EQ(rows_of_b(two.order(), 1, 128), rows_of_b(three.order(), 2, 192));
  EXPECT_NE(rows_of_b(two.order(7), 1, 128), rows_of_b(two.order(8), 1, 128)) << "another seed, another order";
}

TEST(MixtureOrder, ATinyShareIsRefusedByName) {
  const Case tiny{{{"a", 50, {}}, {"b", 70, {}}}, {{0, {1, 1e-7}}}, Exhausted::repeat};
  const auto order = MixtureOrder::make(tiny.sources, tiny.phases, tiny.exhausted, 7);
  ASSERT_FALSE(order.ok());
  EXPECT_NE(order.error().message.find("'b' is to give fewer than 1 row in"), std::string::npos)
      << order.error().message;
}

TEST(MixtureOrder, WeightsOfOtherUnits) {
  // Rows of the first hold 100 tokens, of the second 50: for equal tokens, two rows of it for one.
  const std::vector<double> shares = shares_of_rows(std::vector<double>{1, 1}, std::vector<std::int64_t>{1000, 1000},
                                                    std::vector<std::int64_t>{10, 20});
  EXPECT_DOUBLE_EQ(shares[1] / shares[0], 2);
  const std::vector<double> even = weights_by_size(std::vector<std::int64_t>{100, 10000}, 2);
  EXPECT_NEAR(even[1] / even[0], 10, 1e-7);
}

TEST(MixtureOrder, AColdTemperatureLeavesNoSourceOut) {
  const std::vector<double> cold = weights_by_size(std::vector<std::int64_t>{100, 10'000'000'000, 1}, 0.01);
  EXPECT_EQ(cold[1], 1);
  EXPECT_GT(cold[0], 0);
  EXPECT_GT(cold[2], 0);
  const std::vector<double> shares = shares_of_rows(cold, std::vector<std::int64_t>{100, 10'000'000'000, 1},
                                                    std::vector<std::int64_t>{1, 1'000'000, 1});
  const Error refused = MixtureOrder::make({{"a", 1, {}}, {"b", 1'000'000, {}}, {"c", 1, {}}},
                                           std::vector<MixturePhase>{{0, shares}}, Exhausted::repeat, 0)
                            .error();
  EXPECT_EQ(refused.message, "the source 'a' is to give fewer than 1 row in 524288");
}

}  // namespace
}  // namespace systole
