// The summation tree of exact training: the additions do not depend on the number of workers.

#include "describe/partition/exact.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include <fmt/format.h>

namespace systole {
namespace {

TEST(ExactTree, a_worker_holds_the_largest_complete_subtrees) {
  EXPECT_EQ(shards_of(8, 3, 0), (ShardRange{0, 3}));
  EXPECT_EQ(shards_of(8, 3, 1), (ShardRange{3, 3}));
  EXPECT_EQ(shards_of(8, 3, 2), (ShardRange{6, 2}));
  EXPECT_EQ(subtrees_of({0, 3}), (std::vector<Subtree>{{1, 0}, {0, 2}}));
  EXPECT_EQ(subtrees_of({3, 3}), (std::vector<Subtree>{{0, 3}, {1, 2}}));
  EXPECT_EQ(subtrees_of({6, 2}), (std::vector<Subtree>{{1, 3}}));
  EXPECT_EQ(subtrees_of({0, 8}), (std::vector<Subtree>{{3, 0}}));
  EXPECT_EQ(subtrees_of({1, 6}), (std::vector<Subtree>{{0, 1}, {1, 1}, {1, 2}, {0, 6}}));
  EXPECT_EQ(most_subtrees(8, 3), 2);
  EXPECT_EQ(most_subtrees(8, 4), 1);
}

TEST(ExactTree, one_worker_of_eight_shards_needs_three_slots) {
  using Kind = TreeStep::Kind;
  EXPECT_EQ(tree_steps({0, 8}, true), (std::vector<TreeStep>{{Kind::leaf, 0, 0, false},
                                                             {Kind::leaf, 0, 1, true},
                                                             {Kind::leaf, 1, 2, false},
                                                             {Kind::leaf, 1, 3, true},
                                                             {Kind::merge, 0, 0, false},
                                                             {Kind::leaf, 1, 4, false},
                                                             {Kind::leaf, 1, 5, true},
                                                             {Kind::leaf, 2, 6, false},
                                                             {Kind::leaf, 2, 7, true},
                                                             {Kind::merge, 1, 0, false},
                                                             {Kind::merge, 0, 0, false}}));
  EXPECT_EQ(slots_of(tree_steps({0, 8}, true)), 3);
  EXPECT_EQ(slots_of(tree_steps({0, 8}, false)), 4);
}

// The sum as text, with every bracket.
std::string sum_as_text(int shards, int workers, bool leaves_add) {
  std::map<std::pair<int, int>, std::string> held;
  for (int w = 0; w < workers; ++w) {
    std::map<int, std::string> slots;
    const ShardRange range = shards_of(shards, workers, w);
    for (const TreeStep& step : tree_steps(range, leaves_add)) {
      std::string& slot = slots[step.slot];
      const std::string term =
          step.kind == TreeStep::Kind::merge ? slots.at(step.slot + 1) : std::to_string(step.shard);
      slot = step.kind == TreeStep::Kind::merge || step.adds ? fmt::format("({}+{})", slot, term) : term;
    }
    for (int i = 0; i < static_cast<int>(subtrees_of(range).size()); ++i) held[{w, i}] = slots.at(i);
  }
  return tree_sum<std::string>(
      shards, workers,
      [&](int w, int i) {
        return held.at({w, i});
      },
      [](std::string left, std::string right) { return fmt::format("({}+{})", left, right); });
}

TEST(ExactTree, the_brackets_do_not_depend_on_the_workers) {
  EXPECT_EQ(sum_as_text(4, 3, true), "((0+1)+(2+3))");
  for (const int shards : {1, 2, 4, 8, 16, 64}) {
    const std::string one = sum_as_text(shards, 1, true);
    for (int workers = 1; workers <= shards; ++workers) {
      for (const bool leaves_add : {true, false}) EXPECT_EQ(sum_as_text(shards, workers, leaves_add), one) << workers;
      int next = 0;
      for (int w = 0; w < workers; ++w) {
        const ShardRange range = shards_of(shards, workers, w);
        EXPECT_EQ(range.first, next);
        EXPECT_GE(range.count, 1);
        EXPECT_LE(range.count, shards_of(shards, workers, 0).count);
        next += range.count;
      }
      EXPECT_EQ(next, shards);
    }
  }
}

}  // namespace
}  // namespace systole
