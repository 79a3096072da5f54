#pragma once
// Exact training: sums over the batch have the same bits for any number of workers.
//
// The batch is split into L equal logical shards, L a power of two. A shard's forward and backward have the same shapes
// on every worker. Gradients are summed along one binary tree over the shards, in f32: a node is its left child plus
// its right child. Each worker owns adjacent shards; it sums the largest complete subtrees among them and sends those
// sums. Each worker also owns one block of every parameter, for which it adds the upper nodes of the tree. The tree
// does not depend on the number of workers, so neither do the bits.
//
//   L = 8, 3 workers     0 1 2 | 3 4 5 | 6 7      subtrees  0-1, 2 | 3, 4-5 | 6-7      sent in two slots, one of worker
//                                                                                      2 empty
//
// A worker keeps a stack of subtrees in slots of the gradient. A leaf is pushed, or added in place to its sibling leaf
// on top of the stack; two siblings on top of the stack are merged into one subtree.

#include <functional>
#include <vector>

namespace systole {

struct ShardRange {
  int first = 0, count = 0;
  bool operator==(const ShardRange&) const = default;
};
// The adjacent shards of a worker. Counts differ by one at most; worker 0 has the largest.
// REQUIRES: 1 ≤ workers ≤ shards, 0 ≤ worker < workers.
ShardRange shards_of(int shards, int workers, int worker);

// The shards [index << level, (index + 1) << level).
struct Subtree {
  int level = 0, index = 0;
  bool operator==(const Subtree&) const = default;
};
// The largest complete subtrees in the range, in order; together they cover it.
std::vector<Subtree> subtrees_of(const ShardRange& range);
// The maximum number of subtrees of a worker.
int most_subtrees(int shards, int workers);

struct TreeStep {
  enum class Kind {
    leaf,   // writes the shard's gradient to `slot`, or adds it there
    merge,  // adds slot + 1 to `slot`
  } kind = Kind::leaf;
  int slot = 0;
  int shard = 0;      // leaf only
  bool adds = false;  // leaf only
  bool operator==(const TreeStep&) const = default;
};
// The steps of a worker, in order. At the end subtree i of subtrees_of(range) is in slot i.
// `leaves_add`: a leaf may be added in place to its sibling, which saves a slot.
std::vector<TreeStep> tree_steps(const ShardRange& range, bool leaves_add);
int slots_of(const std::vector<TreeStep>& steps);

// The sum over all shards. `held(worker, i)` gives subtree i of a worker; `add(left, right)` adds two children.
template <typename T>
T tree_sum(int shards, int workers, const std::function<T(int worker, int i)>& held,
           const std::function<T(T left, T right)>& add) {
  struct Place {
    Subtree subtree;
    int worker, i;
  };
  std::vector<Place> places;
  for (int w = 0; w < workers; ++w) {
    const std::vector<Subtree> subtrees = subtrees_of(shards_of(shards, workers, w));
    for (int i = 0; i < static_cast<int>(subtrees.size()); ++i)
      places.push_back({subtrees[static_cast<std::size_t>(i)], w, i});
  }
  const std::function<T(Subtree)> sum = [&](Subtree node) -> T {
    for (const Place& place : places) {
      if (place.subtree == node) return held(place.worker, place.i);
    }
    T left = sum({node.level - 1, 2 * node.index});
    return add(left, sum({node.level - 1, 2 * node.index + 1}));
  };
  int levels = 0;
  while ((1 << levels) < shards) ++levels;
  return sum({levels, 0});
}

}  // namespace systole
