#pragma once
// Lowering of each op to StableHLO: one function per op, a file per family, an explicit list (list.cc).

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "describe/ir/ir.h"
#include "describe/stablehlo/builder.h"
#include "describe/stablehlo/options.h"

namespace systole::stablehlo {

// The module around the node, as far as a lowering needs it.
class ModuleContext {
 public:
  virtual ~ModuleContext() = default;
  // The device groups of a mesh axis, or of several ("data,model"). Errors: Failure(unsupported): no such axis.
  virtual ReplicaGroups groups(std::string_view axis) = 0;
  // The [from, to] pairs of all devices when each sends to the device `by` steps further along the axis, as an
  // attribute or its name. Errors: as groups.
  virtual std::string permute_pairs(std::string_view axis, std::int64_t by) = 0;
  virtual const LowerOptions& options() const = 0;
  virtual void note(std::string text) = 0;  // for people: Module::notes, without duplicates
  // Writes the graph of a region into `b` with `inputs` as its inputs. Returns its outputs.
  virtual std::vector<Ssa> region(Builder& b, const Graph& graph, std::span<const Ssa> inputs) = 0;
};

struct NodeCall {
  const Graph& graph;
  const GraphNode& node;
  std::span<const Ssa> operands;
  std::vector<Type> results;  // as inferred by `infer`
  ModuleContext& around;
};

// Returns the node's results, with the types `call.results`.
using LowerOp = std::vector<Ssa> (*)(Builder& b, const NodeCall& call);

struct OpLowering {
  const char* op;
  LowerOp lower;
};

// The families, collected in list.cc.
std::vector<OpLowering> elementwise_lowerings();  // elementwise.cc: and cast, compare, select
std::vector<OpLowering> movement_lowerings();     // movement.cc: constant to pad, take_row, take_part, cache_write
std::vector<OpLowering> reduce_lowerings();       // reduce.cc: and contract
std::vector<OpLowering> region_lowerings();       // regions.cc: repeat, fusion
std::vector<OpLowering> collective_lowerings();   // collectives.cc
std::vector<OpLowering> softmax_lowerings();      // softmax.cc: and cross_entropy, its gradient
std::vector<OpLowering> norm_lowerings();         // norms.cc
std::vector<OpLowering> embedding_lowerings();    // embedding.cc: and embedding_int8, rotary
std::vector<OpLowering> int8_lowerings();         // contract_int8.cc
std::vector<OpLowering> int4_lowerings();         // contract_int4.cc
std::vector<OpLowering> lora_lowerings();         // lora_rows.cc
std::vector<OpLowering> routing_lowerings();      // routing.cc: gather_rows, scatter_rows, top_k, route
std::vector<OpLowering> random_lowerings();       // random.cc: dropout, stochastic_round
std::vector<OpLowering> optimizer_lowerings();    // optimizers.cc
std::vector<OpLowering> attention_lowerings();    // attention.cc, attention_grad.cc
std::vector<OpLowering> paged_lowerings();        // paged.cc: page_write, paged_attention

const OpLowering* find_lowering(std::string_view op);

}  // namespace systole::stablehlo
