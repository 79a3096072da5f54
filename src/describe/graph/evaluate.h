#pragma once
// The slow, obvious evaluator: node by node through the `reference` facets, a fresh tensor per value. The twin that
// everything fast is compared with, and what constant folding uses. One device: a collective over more than one part is
// refused by its op.

#include <span>
#include <vector>

#include "describe/graph/op.h"
#include "ground/tensor/buffer.h"

namespace systole {

TensorView view_of(HostTensor& tensor, const Type& type);

// One tensor per output, in order. REQUIRES: one input per graph input, of its type.
std::vector<HostTensor> evaluate(const Graph& graph, std::span<const HostTensor> inputs);

// The same over views: reads `inputs`, writes `outputs`, which must not overlap the inputs.
void evaluate_into(const Graph& graph, std::span<const TensorView> inputs, std::span<const TensorView> outputs);

}  // namespace systole
