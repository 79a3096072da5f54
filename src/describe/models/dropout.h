#pragma once
// Dropout in a model: the key of the step is an input of the graph, and each use has its own site.

#include "describe/ops/ops.h"

namespace systole {

// A random key without its site.
struct DropoutKey {
  Value seed, step, row;  // i64[]; row: global index of the batch's first row
};

// Declares the inputs "seed", "step" and "row".
DropoutKey dropout_inputs(Graph& graph);
// x[batch, ...]; site i64[]: unique per use in a graph.
Value drop_at(Value x, const DropoutKey& key, Value site, double rate);

}  // namespace systole
