#pragma once
// Passes over a graph, and the runner that names, times, verifies and can skip each. A pass is a pure function.

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "describe/graph/ir.h"
#include "describe/graph/target.h"
#include "describe/graph/zigzag.h"

namespace systole {

struct Pass {
  std::string name;
  std::function<Graph(const Graph&)> run;
};

struct PassRecord {
  std::string name;
  Seconds time;
  int nodes_before = 0, nodes_after = 0;  // regions included
  bool skipped = false;
};

// Runs the passes in order and verifies what comes out; those named in `skip` are left out. Thread-safe.
// REQUIRES: a pass called twice on a graph gives the same graph.
// Errors: Failure(internal) naming the pass whose result does not verify.
Graph run_passes(Graph graph, std::span<const Pass> passes, std::span<const std::string> skip = {},
                 std::vector<PassRecord>* records = nullptr);

// The four named types of mixed precision.
struct Precision {
  DType parameter = DType::f32;   // parameters and optimizer state as kept
  DType compute = DType::bf16;    // operands of contractions and attention, activations
  DType accumulate = DType::f32;  // inside contractions and sums; f32 is what every backend does
  DType reduce = DType::f32;      // gradients: their type when summed over microbatches and on the wire
};

// Inserts the casts of mixed precision into a graph built in f32, by each op's PrecisionRule; before autodiff.
// With compute f64 every f32 becomes f64 (tests).
Graph apply_precision(const Graph& graph, const Precision& precision);

// A training graph whose rows of tokens (dims "seq") come in zigzag order of so many parts (describe/graph/zigzag.h):
// what tells places by where they lie is told of the order. Errors: Failure(unsupported) naming what cannot be.
Graph in_zigzag(const Graph& graph, std::int64_t parts, ContextKeys keys = ContextKeys::all_gather);
// Whether a node still takes whole rows in that order: no device does.
bool has_zigzag(const Graph& graph);

// Elementwise ops and casts of constants become constants; multiplying or dividing by 1 and casts to the same type go.
Graph fold_constants(const Graph& graph);
// Equal op, attributes, operands and regions: one node.
Graph merge_common(const Graph& graph);
// Nodes that no output needs go; so do results of a repeat that nobody reads.
Graph drop_dead(const Graph& graph);
// The graph without its other outputs and what only they need. Errors: Failure(not_found): no such output.
Graph with_only(const Graph& graph, std::string_view output);
// A contraction or sum in bf16 or f16 whose only reader casts it to f32 gives f32 at once.
Graph widen_results(const Graph& graph);
// Where an input is added to what a repeat stacks (gradients summed over microbatches), the addition moves into the
// body: each slice is added as it is made, and the stack may take the input's place. So does a cast of what it stacks
// (gradients that are sent in bf16): the body can reduce what it makes, and nothing is stacked in the wider type.
Graph add_in_repeats(const Graph& graph);
// Chains of elementwise ops and broadcasts become `fusion` nodes, as the Target's rules allow.
Graph fuse_chains(const Graph& graph, const FusionRules& rules);
// Every output of the graph and of each body gets a node of its own that writes it (an explicit copy where it is an
// input, a view of one, or an output already), so that memory planning can give each output its place.
Graph own_outputs(const Graph& graph);

int count_nodes(const Graph& graph);  // regions included

}  // namespace systole
