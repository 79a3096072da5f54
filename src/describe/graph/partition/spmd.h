#pragma once
// One graph for all devices out of the graph for one: every value is cut as its layout says, every op is given its
// part, and collectives stand where layouts differ. Generic over the ops' sharding rules; GSPMD's idea (Xu et al.,
// "GSPMD: General and Scalable Parallelization for ML Computation Graphs", 2021), decided in one walk from inputs to
// outputs:
//
// * an op is cut along the factors of its rule that move fewest bytes, given where its operands lie and what the names
//   of its results' dims wish for (choose.h); a parameter's cut stays and activations move;
// * terms of a sum stay terms through linear ops, until an op needs the sum: then it is reduced, or reduce-scattered
//   where that op wants a part;
// * what a repeat carries has one layout: as the names of its dims say; a sum that is carried may be carried as terms;
// * a parameter that is stored in parts is gathered in the body that reads it, after the casts to the compute type, so
//   that only one layer's is whole at a time.
//
// Devices differ in their place on the axes only: "coordinate.<axis>" i64[] is an input of graphs that need it.

#include <map>
#include <string>
#include <vector>

#include "describe/graph/ir.h"
#include "describe/graph/partition/choose.h"
#include "describe/graph/partition/layout.h"

namespace systole {

struct SpmdRequest {
  const Mesh& mesh;
  std::span<const AxisRule> rules;
  std::map<std::string, Layout> inputs;  // how an input comes; absent: whole
  std::map<std::string, Layout> used;    // to what a parameter is gathered where it is read; absent: as it comes
  // As an output is wanted; absent: as it comes, terms of sums added up. Numbers of terms on the same axes that are
  // wanted are added up in one message.
  std::map<std::string, Layout> outputs;
  bool fill = false;  // dims may be cut that leave a rest (choose.h)
  bool terms = true;  // what a repeat carries may be terms of a sum
};

struct SpmdGraph {
  Graph graph;
  std::map<std::string, Layout> outputs;
};

// What is stored in parts, parameters and sums of gradients, may be filled up with zeros: it is gathered before an op
// reads it, or only added to. REQUIRES: other inputs are divided by their layouts, or `fill` holds.
SpmdGraph spmd(const Graph& whole, const SpmdRequest& request);

std::string coordinate_name(const std::string& axis);  // "coordinate.data"

}  // namespace systole
