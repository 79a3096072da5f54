#pragma once
// The reference evaluator: runs the `reference` facet of each node in order, with a fresh tensor per value. It is slow
// and obvious; everything fast is compared with it. It runs one device: ops refuse collectives over more than one part.

#include <span>
#include <vector>

#include "describe/ir/op.h"
#include "ground/tensor/buffer.h"

namespace systole {

TensorView view_of(HostTensor& tensor, const Type& type);

// Returns one tensor per output, in order. REQUIRES: one input per graph input, of its type.
std::vector<HostTensor> evaluate(const Graph& graph, std::span<const HostTensor> inputs);

// The same on views: reads `inputs`, writes `outputs`. Inputs and outputs must not overlap.
void evaluate_into(const Graph& graph, std::span<const TensorView> inputs, std::span<const TensorView> outputs);

}  // namespace systole
