#pragma once
// SPMD partitioning: turns the graph of one device into one graph that all devices of a mesh run. Every value is
// sharded by its layout, every op runs on shards, and collectives connect layouts that differ. Follows GSPMD (Xu et
// al., "GSPMD: General and Scalable Parallelization for ML Computation Graphs", 2021), over the ops' sharding rules,
// but decides in one pass from inputs to outputs:
//
// * Each op is sharded along the factors of its rule that move the fewest bytes, given its operands' layouts and the
//   preference of its results' dim names (choose.h). Parameters keep their sharding; activations move.
// * Partial sums pass through linear ops; the first op that needs the total triggers an all_reduce, or a reduce_scatter
//   if it needs a shard.
// * A carry of a repeat has one layout, by the names of its dims. A sum may be carried as partial sums.
// * A sharded parameter (ZeRO-3, FSDP) is gathered in the body that reads it, after the casts to the compute type, so
//   only one layer is whole at a time.
//
// Devices differ only in their coordinates: "coordinate.<axis>" i64[] is an input of graphs that need it.

#include <map>
#include <string>
#include <vector>

#include "describe/ir/ir.h"
#include "describe/partition/choose.h"
#include "describe/program/layout.h"

namespace systole {

struct SpmdRequest {
  const Mesh& mesh;
  std::span<const AxisRule> rules;
  std::map<std::string, Layout> inputs;  // layouts of inputs; absent: replicated
  std::map<std::string, Layout> used;    // layouts that parameters are gathered to for readers; absent: as input
  // Requested layouts of outputs; absent: as computed, with partial sums reduced. Requested scalars that are partial
  // sums on the same axes are reduced in one message.
  std::map<std::string, Layout> outputs;
  bool fill = false;  // dims may be sharded unevenly, with padding (choose.h)
  bool terms = true;  // a repeat may carry partial sums
};

struct SpmdGraph {
  Graph graph;
  std::map<std::string, Layout> outputs;
};

// Sharded parameters and sums of gradients may be padded with zeros: they are gathered before an op reads them, or only
// added to. REQUIRES: the layouts of all other inputs divide them evenly, or `fill` is set.
SpmdGraph spmd(const Graph& whole, const SpmdRequest& request);

std::string coordinate_name(const std::string& axis);  // "coordinate.data"

}  // namespace systole
