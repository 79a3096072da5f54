#pragma once
// Passes over a graph, and the runner that names, times, skips and verifies them. A pass is a pure function.

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "describe/ir/ir.h"
#include "describe/ops/fusion_rules.h"
#include "describe/ops/zigzag.h"

namespace systole {

struct Pass {
  std::string name;
  std::function<Graph(const Graph&)> run;
};

struct PassRecord {
  std::string name;
  Seconds time;
  int nodes_before = 0, nodes_after = 0;  // nodes in regions count too
  bool skipped = false;
};

// Runs the passes in order, except those named in `skip`, and verifies the result. Thread-safe.
// REQUIRES: every pass is deterministic.
// Errors: Failure(internal), which names the pass whose result does not verify.
Graph run_passes(Graph graph, std::span<const Pass> passes, std::span<const std::string> skip = {},
                 std::vector<PassRecord>* records = nullptr);

// The four types of mixed precision.
struct Precision {
  DType parameter = DType::f32;   // parameters and optimizer state
  DType compute = DType::bf16;    // operands of contractions and attention, activations
  DType accumulate = DType::f32;  // inside contractions and sums; every backend uses f32
  DType reduce = DType::f32;      // gradients, when summed over microbatches and sent between devices
};

// Inserts the casts of mixed precision into a graph built in f32, by each op's PrecisionRule. Runs before autodiff.
// With compute f64 every f32 becomes f64 (tests).
Graph apply_precision(const Graph& graph, const Precision& precision);

// Adapts a training graph to rows of tokens (dims "seq") in zigzag order of `parts` parts (describe/ops/zigzag.h): ops
// that depend on token positions get the order. Errors: Failure(unsupported), which names the op that has no such form.
Graph in_zigzag(const Graph& graph, std::int64_t parts, ContextKeys keys = ContextKeys::all_gather);
// Whether a node still has the attribute `zigzag`. Partitioning must remove it: no device runs whole rows in that
// order.
bool has_zigzag(const Graph& graph);

// Folds elementwise ops, broadcasts, reshapes and transposes of constants; removes multiplications and divisions by 1.
Graph fold_constants(const Graph& graph);
// Common subexpression elimination: nodes with equal op, attributes and operands become one. Nodes with regions and
// all_to_all are never merged.
Graph merge_common(const Graph& graph);
// Dead code elimination: removes nodes that no output needs, and unread stacked results of repeats.
Graph drop_dead(const Graph& graph);
// Keeps one output and the nodes that it needs. Errors: Failure(not_found): no such output.
Graph with_only(const Graph& graph, std::string_view output);
// A bf16 or f16 contraction or reduce_sum whose only reader casts it to f32 gives f32 directly. With `narrow_sums`, a
// reduce_sum of f32 values that a cast made of bf16 or f16 reads the narrow values and still gives f32: the same bits
// without a wide copy.
Graph widen_results(const Graph& graph, bool narrow_sums);
// Moves an addition of a graph input to the stacked result of a repeat (gradients summed over microbatches) into the
// body: each slice is added when it is computed, and the stack may overwrite the input. Moves a cast of a stacked
// result (gradients sent in bf16) into the body too: the body can reduce the narrow value, and the wide type is never
// stacked.
Graph add_in_repeats(const Graph& graph);
// Fuses chains of elementwise ops and broadcasts into `fusion` nodes, within the Target's rules.
Graph fuse_chains(const Graph& graph, const FusionRules& rules);
// Gives every output of the graph and of each repeat body a node of its own that writes it, so that memory planning can
// place each output separately. Adds a copy where an output is an input, a view of one, or another output.
Graph own_outputs(const Graph& graph);

}  // namespace systole
