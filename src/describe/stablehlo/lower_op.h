#pragma once
// How each op is written in StableHLO: one function per op, in a file per family, in one explicit list (list.cc).

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "describe/graph/ir.h"
#include "describe/stablehlo/builder.h"
#include "describe/stablehlo/options.h"

namespace systole::stablehlo {

// What a lowering may ask of the module around the node.
class Surroundings {
 public:
  virtual ~Surroundings() = default;
  // The device groups of a mesh axis, or of several ("data,model"). Errors: Failure(unsupported): no such axis.
  virtual ReplicaGroups groups(std::string_view axis) = 0;
  // Who sends to whom, [from, to] device by device, when each sends to the device `by` further along the axis, as an
  // attribute or its name. Errors: as groups.
  virtual std::string permute_pairs(std::string_view axis, std::int64_t by) = 0;
  virtual const LowerOptions& options() const = 0;
  virtual void note(std::string text) = 0;  // for people: Module::notes, each text once
  // The graph of a region with `inputs` for its inputs, into `b`; its outputs.
  virtual std::vector<Ssa> region(Builder& b, const Graph& graph, std::span<const Ssa> inputs) = 0;
};

struct NodeCall {
  const Graph& graph;
  const GraphNode& node;
  std::span<const Ssa> operands;
  std::vector<Type> results;  // as `infer` gave them
  Surroundings& around;
};

// Returns the node's results, of the types in `call.results`.
using LowerOp = std::vector<Ssa> (*)(Builder& b, const NodeCall& call);

struct OpLowering {
  const char* op;
  LowerOp lower;
};

// The families; list.cc joins them.
std::vector<OpLowering> elementwise_lowerings();  // elementwise.cc: and cast, compare, select
std::vector<OpLowering> movement_lowerings();     // movement.cc: constant to pad, take_row, take_part, cache_write
std::vector<OpLowering> reduce_lowerings();       // reduce.cc: and contract
std::vector<OpLowering> region_lowerings();       // regions.cc: repeat, fusion
std::vector<OpLowering> collective_lowerings();   // collectives.cc
std::vector<OpLowering> softmax_lowerings();      // softmax.cc: and cross_entropy, its gradient
std::vector<OpLowering> norm_lowerings();         // norms.cc
std::vector<OpLowering> embedding_lowerings();    // embedding.cc: and rotary
std::vector<OpLowering> routing_lowerings();      // routing.cc: gather_rows, scatter_rows, top_k, route
std::vector<OpLowering> random_lowerings();       // random.cc: dropout, stochastic_round
std::vector<OpLowering> optimizer_lowerings();    // optimizers.cc
std::vector<OpLowering> attention_lowerings();    // attention.cc, attention_grad.cc

const OpLowering* find_lowering(std::string_view op);

}  // namespace systole::stablehlo
