#pragma once
// Exact training: sums over the batch that have the same bits for any number of workers.
//
// The batch is cut into L equal logical shards, L a power of two; a shard's forward and backward have the same shapes
// whoever runs them. Over the shards stands one binary tree: a node's sum is its left half's plus its right half's, in
// f32. A worker owns neighbouring shards, adds up the largest complete subtrees among them, and sends those; the nodes
// above are added by whoever owns the block of the parameter, of which every worker has one. The tree is the same for
// any number of workers, so are the sums' bits.
//
//   L = 8, 3 workers     0 1 2 | 3 4 5 | 6 7      subtrees  0-1, 2 | 3, 4-5 | 6-7      sent in two slots, one of worker
//                                                                                      2 empty
//
// While it works a worker keeps a stack of subtrees, in slots of the gradient: a leaf is pushed, or added to its left
// neighbour in the slot below where both are leaves, and two neighbours of one size on top become one.

#include <functional>
#include <vector>

namespace systole {

struct ShardRange {
  int first = 0, count = 0;
  bool operator==(const ShardRange&) const = default;
};
// Neighbouring shards of a worker, counts that differ by one at most, worker 0's the largest.
// REQUIRES: 1 ≤ workers ≤ shards, 0 ≤ worker < workers.
ShardRange shards_of(int shards, int workers, int worker);

// The shards [index << level, (index + 1) << level).
struct Subtree {
  int level = 0, index = 0;
  bool operator==(const Subtree&) const = default;
};
// The largest complete subtrees, in order; they cover the range.
std::vector<Subtree> subtrees_of(const ShardRange& range);
// Of any worker at most.
int most_subtrees(int shards, int workers);

struct TreeStep {
  enum class Kind {
    leaf,   // the shard's gradient is put into `slot`, or added to what is there
    merge,  // what is in slot + 1 is added to `slot`
  } kind = Kind::leaf;
  int slot = 0;
  int shard = 0;      // of a leaf
  bool adds = false;  // of a leaf
  bool operator==(const TreeStep&) const = default;
};
// What a worker does with its shards, in order; at the end subtree i of subtrees_of(range) is in slot i.
// `leaves_add`: a leaf may be added where its neighbour lies, which takes a slot less.
std::vector<TreeStep> tree_steps(const ShardRange& range, bool leaves_add);
int slots_of(const std::vector<TreeStep>& steps);

// The sum over all shards: `held(worker, i)` gives subtree i of a worker, `add(left, right)` a node's sum.
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
