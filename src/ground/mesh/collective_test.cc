// Executes each algorithm's transfers on vectors of integers and compares with the definition, for 1..9 ranks and sizes
// not divisible by the number of ranks.
#include "ground/mesh/collective.h"

#include <gtest/gtest.h>

#include <map>
#include <tuple>

namespace systole {
namespace {

using Buffer = std::vector<std::int64_t>;  // one number stands for one byte
using Buffers = std::vector<Buffer>;       // one per rank

std::int64_t initial(std::int64_t rank, std::int64_t place) { return (rank + 1) * 1000003 + place * 17; }

Buffers inputs(const Collective& c) {
  Buffers result(static_cast<std::size_t>(c.num_ranks()));
  for (std::int64_t r = 0; r < c.num_ranks(); ++r) {
    const ByteSpan own = chunk_of(c, r);
    for (std::int64_t i = 0; i < c.bytes.count(); ++i) {
      const bool holds = (c.kind != CollectiveKind::all_gather || (own.begin.count() <= i && i < own.end.count())) &&
                         (c.kind != CollectiveKind::broadcast || r == 0);
      result[static_cast<std::size_t>(r)].push_back(holds ? initial(r, i) : -1);
    }
  }
  return result;
}

// All transfers of a step read the state before it. Two transfers to the same place are an error, unless both add.
Buffers play(const Collective& c, const std::vector<Transfer>& transfers) {
  Buffers source = inputs(c), target = source;
  const bool apart = c.kind == CollectiveKind::all_to_all || c.kind == CollectiveKind::collective_permute;
  for (std::size_t i = 0; i < transfers.size();) {
    const Buffers before = source;
    Buffers& into = apart ? target : source;
    std::map<std::pair<std::int32_t, std::int64_t>, bool> written;  // rank and place → was added to
    for (const int step = transfers[i].step; i < transfers.size() && transfers[i].step == step; ++i) {
      const Transfer& t = transfers[i];
      EXPECT_NE(t.from, t.to);
      EXPECT_GT(t.bytes.count(), 0);
      for (std::int64_t k = 0; k < t.bytes.count(); ++k) {
        const auto place = static_cast<std::size_t>(t.to_offset.count() + k);
        const auto [first, fresh] = written.try_emplace({t.to, static_cast<std::int64_t>(place)}, t.reduce);
        EXPECT_TRUE(fresh || (first->second && t.reduce)) << "two writers";
        const std::int64_t value =
            before.at(static_cast<std::size_t>(t.from)).at(static_cast<std::size_t>(t.from_offset.count() + k));
        std::int64_t& held = into.at(static_cast<std::size_t>(t.to)).at(place);
        held = t.reduce ? held + value : value;
      }
    }
  }
  return apart ? target : source;
}

// The value by definition; nothing if undefined.
std::optional<std::int64_t> expected(const Collective& c, std::int64_t rank, std::int64_t place) {
  const std::int64_t n = c.num_ranks();
  std::int64_t sum = 0, owner = 0;
  for (std::int64_t r = 0; r < n; ++r) {
    sum += initial(r, place);
    if (chunk_of(c, r).begin.count() <= place && place < chunk_of(c, r).end.count()) owner = r;
  }
  switch (c.kind) {
    case CollectiveKind::all_reduce: return sum;
    case CollectiveKind::reduce_scatter: return owner == rank ? std::optional(sum) : std::nullopt;
    case CollectiveKind::all_gather: return initial(owner, place);
    case CollectiveKind::all_to_all:
      return initial(owner, place - chunk_of(c, owner).begin.count() + chunk_of(c, rank).begin.count());
    case CollectiveKind::collective_permute: return initial((rank + n - c.by % n) % n, place);
    case CollectiveKind::broadcast: return initial(0, place);
  }
  return std::nullopt;
}

std::vector<std::tuple<CollectiveKind, CollectiveAlgorithm>> all_pairs() {
  std::vector<std::tuple<CollectiveKind, CollectiveAlgorithm>> pairs;
  for (const char* name :
       {"all_reduce", "reduce_scatter", "all_gather", "all_to_all", "collective_permute", "broadcast"}) {
    for (const CollectiveAlgorithm a : algorithms_of(*collective_named(name)))
      pairs.emplace_back(*collective_named(name), a);
  }
  return pairs;
}

TEST(Collective, playing_the_transfers_computes_the_definition) {
  for (const auto& [kind, algorithm] : all_pairs()) {
    for (const std::vector<std::int64_t>& axes : std::vector<std::vector<std::int64_t>>{
             {1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, {9}, {2, 2}, {2, 3}, {3, 2}, {1, 4}, {4, 1}, {3, 3}, {2, 2, 2}}) {
      const std::int64_t n = Collective{kind, axes}.num_ranks();
      for (const std::int64_t per_rank : {0, 1, 7}) {
        for (const std::int64_t rest : {0, 1, 5}) {
          if (kind == CollectiveKind::all_to_all && rest % n != 0) continue;
          const Collective c{kind, axes, Bytes(n * per_rank + rest), Bytes(1)};
          const Buffers result = play(c, transfers_of(c, algorithm).value());
          for (std::int64_t r = 0; r < n; ++r) {
            for (std::int64_t i = 0; i < c.bytes.count(); ++i) {
              const auto want = expected(c, r, i);
              if (!want) continue;
              ASSERT_EQ(result[static_cast<std::size_t>(r)][static_cast<std::size_t>(i)], *want)
                  << name_of(kind) << " " << name_of(algorithm) << " ranks " << n << " bytes " << c.bytes.count();
            }
          }
        }
      }
    }
  }
}

// Any shift, in either direction and beyond n; a shift by a multiple of n sends nothing.
TEST(Collective, permuting_by_any_number) {
  for (const std::int64_t n : {1, 2, 3, 5}) {
    for (std::int64_t by = -2 * n - 1; by <= 2 * n + 1; ++by) {
      const Collective c{CollectiveKind::collective_permute, {n}, Bytes(6), Bytes(2), by};
      const auto transfers = transfers_of(c, CollectiveAlgorithm::direct).value();
      EXPECT_EQ(transfers.size(), by % n == 0 ? 0u : static_cast<std::size_t>(n));
      const Buffers result = play(c, transfers);
      for (std::int64_t r = 0; r < n; ++r) {
        const auto rank = static_cast<std::int32_t>(r);
        EXPECT_EQ(result[static_cast<std::size_t>(r)][5], initial((r + 3 * n - by) % n, 5)) << n << " by " << by;
        EXPECT_EQ(bytes_sent(c, CollectiveAlgorithm::direct, rank).value(), bytes_sent(transfers, rank));
      }
    }
  }
}

// The bytes sent equal the textbook formulas, in integers, for every size.
TEST(Collective, bytes_are_conserved) {
  for (const auto& [kind, algorithm] : all_pairs()) {
    for (std::int64_t n = 2; n <= 9; ++n) {
      for (const std::int64_t bytes : {n * 64, n * 64 + n - 1}) {
        if (kind == CollectiveKind::all_to_all && bytes % n != 0) continue;
        const Collective c{kind, {n}, Bytes(bytes), Bytes(1)};
        const auto transfers = transfers_of(c, algorithm).value();
        std::int64_t sum = 0;
        for (std::int32_t r = 0; r < n; ++r) sum += bytes_sent(transfers, r).count();
        const bool power = (n & (n - 1)) == 0;
        if (kind == CollectiveKind::all_to_all) {
          EXPECT_EQ(sum, (n - 1) * bytes);
        } else if (kind == CollectiveKind::collective_permute) {
          EXPECT_EQ(sum, n * bytes);  // each sends its own tensor once
        } else if (kind != CollectiveKind::all_reduce) {
          EXPECT_EQ(sum, (n - 1) * bytes) << name_of(kind) << " " << name_of(algorithm) << " " << n;
        } else if (algorithm != CollectiveAlgorithm::recursive_halving_doubling || power) {
          EXPECT_EQ(sum, 2 * (n - 1) * bytes) << name_of(algorithm) << " " << n;
        } else {  // folded ranks send and receive the whole: 2 bytes each beyond the traffic within the power of two
          std::int64_t p = 1;
          while (p * 2 <= n) p *= 2;
          EXPECT_EQ(sum, 2 * (p - 1) * bytes + 2 * (n - p) * bytes);
        }
      }
    }
  }
}

TEST(Collective, steps_are_as_many_as_published) {
  const auto steps = [](CollectiveKind kind, std::int64_t n, CollectiveAlgorithm a) {
    return transfers_of({kind, {n}, Bytes(n * 8), Bytes(1)}, a).value().back().step + 1;
  };
  EXPECT_EQ(steps(CollectiveKind::all_reduce, 8, CollectiveAlgorithm::ring), 14);
  EXPECT_EQ(steps(CollectiveKind::all_reduce, 8, CollectiveAlgorithm::recursive_halving_doubling), 6);
  EXPECT_EQ(steps(CollectiveKind::all_reduce, 9, CollectiveAlgorithm::recursive_halving_doubling), 8);
  EXPECT_EQ(steps(CollectiveKind::broadcast, 9, CollectiveAlgorithm::binomial_tree), 4);
  EXPECT_EQ(steps(CollectiveKind::all_gather, 9, CollectiveAlgorithm::direct), 1);
  EXPECT_EQ(steps(CollectiveKind::all_reduce, 9, CollectiveAlgorithm::direct), 2);
}

// Bytes that leave a group of the inner axis: hierarchical sends each byte over the outer axis once per outer rank,
// direct as many times as there are inner ranks.
TEST(Collective, hierarchical_spares_the_outer_axis) {
  const auto across = [](CollectiveKind kind, CollectiveAlgorithm algorithm) {
    std::int64_t sum = 0;
    for (const Transfer& t : transfers_of({kind, {3, 4}, Bytes(1200), Bytes(4)}, algorithm).value()) {
      if (t.from / 4 != t.to / 4) sum += t.bytes.count();
    }
    return sum;
  };
  EXPECT_EQ(across(CollectiveKind::all_reduce, CollectiveAlgorithm::hierarchical), 2 * 2 * 1200);
  EXPECT_EQ(across(CollectiveKind::all_reduce, CollectiveAlgorithm::direct), 2 * 8 * 1200);
  EXPECT_EQ(across(CollectiveKind::all_gather, CollectiveAlgorithm::hierarchical), 2 * 1200);
  EXPECT_EQ(across(CollectiveKind::reduce_scatter, CollectiveAlgorithm::hierarchical), 2 * 1200);
}

TEST(Collective, chunks_cut_no_element_and_cover_all) {
  const Collective c{CollectiveKind::all_gather, {2, 3}, Bytes(4 * 13), Bytes(4)};
  EXPECT_EQ(c.num_ranks(), 6);
  Bytes at{};
  for (std::int64_t i = 0; i < 6; ++i) {
    EXPECT_EQ(chunk_of(c, i).begin, at);
    at = chunk_of(c, i).end;
    EXPECT_EQ(at.count() % 4, 0);
  }
  EXPECT_EQ(at, c.bytes);
  const std::vector<Transfer> transfers = transfers_of(c, CollectiveAlgorithm::ring).value();
  for (const Transfer& t : transfers) EXPECT_EQ(t.bytes.count() % 4, 0);
  const Collective huge{CollectiveKind::all_gather, {7}, Bytes(std::int64_t{1} << 62), Bytes(2)};
  EXPECT_EQ(chunk_of(huge, 6).end, huge.bytes);
}

TEST(Collective, refuses_with_the_names_that_would_do) {
  const auto refused = transfers_of({CollectiveKind::all_to_all, {4}, Bytes(16), Bytes(1)}, CollectiveAlgorithm::ring);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::unsupported);
  EXPECT_NE(refused.error().hint.find("direct"), std::string::npos);
  EXPECT_FALSE(transfers_of({CollectiveKind::all_to_all, {4}, Bytes(18), Bytes(1)}, CollectiveAlgorithm::direct).ok());
  EXPECT_FALSE(transfers_of({CollectiveKind::all_reduce, {4}, Bytes(18), Bytes(4)}, CollectiveAlgorithm::ring).ok());
  EXPECT_FALSE(transfers_of({CollectiveKind::all_reduce, {4}, Bytes(-4), Bytes(1)}, CollectiveAlgorithm::ring).ok());
}

TEST(Collective, names_read_back) {
  for (const auto& [kind, algorithm] : all_pairs()) {
    EXPECT_EQ(collective_named(name_of(kind)), kind);
    EXPECT_EQ(collective_algorithm_named(name_of(algorithm)), algorithm);
  }
  EXPECT_FALSE(collective_named("all_reduced").has_value());
}

TEST(Collective, bytes_sent_without_the_list) {
  for (const CollectiveKind kind :
       {CollectiveKind::all_reduce, CollectiveKind::reduce_scatter, CollectiveKind::all_gather,
        CollectiveKind::all_to_all, CollectiveKind::collective_permute, CollectiveKind::broadcast}) {
    for (const CollectiveAlgorithm algorithm : algorithms_of(kind)) {
      for (const std::int64_t n : {1, 2, 3, 5, 8}) {
        const std::int64_t elements = kind == CollectiveKind::all_to_all ? 7 * n : 4 * n + 3;
        const Collective collective{kind, {n}, Bytes(elements * 4), Bytes(4)};
        const auto transfers = transfers_of(collective, algorithm).value();
        for (std::int32_t rank = 0; rank < n; ++rank) {
          EXPECT_EQ(bytes_sent(collective, algorithm, rank).value(), bytes_sent(transfers, rank))
              << name_of(kind) << " " << name_of(algorithm) << ", rank " << rank << " of " << n;
        }
      }
    }
  }
}

}  // namespace
}  // namespace systole
