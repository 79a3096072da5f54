#pragma once
// Dropout in a model: the step's key as inputs of the graph, and a site of its own for each use.

#include "describe/graph/ops/ops.h"

namespace systole {

// A random key without its site.
struct DropoutKey {
  Value seed, step, row;  // i64[]; row: global index of the batch's first row
};

// Declares the inputs "seed", "step" and "row".
DropoutKey dropout_inputs(Graph& graph);
// x[batch, ...]; site i64[]: no two uses of a graph may share one.
Value drop_at(Value x, const DropoutKey& key, Value site, double rate);

}  // namespace systole
