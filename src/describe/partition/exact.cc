#include "describe/partition/exact.h"

#include <algorithm>

#include "ground/base/error.h"

namespace systole {

ShardRange shards_of(int shards, int workers, int worker) {
  CHECK(workers >= 1 && workers <= shards && worker >= 0 && worker < workers, "worker {} of {} for {} shards", worker,
        workers, shards);
  const auto begin = [&](int w) { return (w * shards + workers - 1) / workers; };
  return {begin(worker), begin(worker + 1) - begin(worker)};
}

std::vector<Subtree> subtrees_of(const ShardRange& range) {
  std::vector<Subtree> subtrees;
  for (int at = range.first, end = range.first + range.count; at < end;) {
    int level = 0;
    while (at % (2 << level) == 0 && at + (2 << level) <= end) ++level;
    subtrees.push_back({level, at >> level});
    at += 1 << level;
  }
  return subtrees;
}

int most_subtrees(int shards, int workers) {
  std::size_t most = 0;
  for (int w = 0; w < workers; ++w) most = std::max(most, subtrees_of(shards_of(shards, workers, w)).size());
  return static_cast<int>(most);
}

std::vector<TreeStep> tree_steps(const ShardRange& range, bool leaves_add) {
  std::vector<TreeStep> steps;
  std::vector<Subtree> stack;
  const auto siblings = [](const Subtree& left, const Subtree& right) {
    return left.level == right.level && left.index % 2 == 0 && right.index == left.index + 1;
  };
  for (int shard = range.first; shard < range.first + range.count; ++shard) {
    const Subtree leaf{0, shard};
    const int depth = static_cast<int>(stack.size());
    if (leaves_add && !stack.empty() && siblings(stack.back(), leaf)) {
      steps.push_back({TreeStep::Kind::leaf, depth - 1, shard, true});
      stack.back() = {1, shard / 2};
    } else {
      steps.push_back({TreeStep::Kind::leaf, depth, shard, false});
      stack.push_back(leaf);
    }
    while (stack.size() > 1 && siblings(stack[stack.size() - 2], stack.back())) {
      stack.pop_back();
      stack.back() = {stack.back().level + 1, stack.back().index / 2};
      steps.push_back({TreeStep::Kind::merge, static_cast<int>(stack.size()) - 1, 0, false});
    }
  }
  return steps;
}

int slots_of(const std::vector<TreeStep>& steps) {
  int slots = 1;
  for (const TreeStep& step : steps) slots = std::max(slots, step.slot + (step.kind == TreeStep::Kind::merge ? 2 : 1));
  return slots;
}

}  // namespace systole
