#pragma once
// Serving as a Program: functions that compute the next tokens of sequences, for several numbers of sequences and of
// tokens, and the last hidden states of whole texts. All update one cache of keys and values in place. Planned memory
// covers the largest of them.
//
// Values (besides the parameters, by their names):
//   cache             "cache.k", "cache.v" and other "cache.…" of the graphs, shared by all functions
//   parameter         those of adapters too, "lora.…" (describe/ir/served_adapters.h)
//   inputs, outputs   "<function>/<name>": other inputs of the function's graph, and its "logits" or "hidden"
//   input             "coordinate.model" on a mesh: the device's place, written once
// Each function has a schedule of its name.

#include <string>
#include <utility>
#include <vector>

#include "describe/partition/builder.h"
#include "describe/passes/int8_weights.h"

namespace systole {

// Graphs of one model by the names of their functions (describe/models/model.h: step, prefill, decode, hidden), in f32,
// with caches of the same types.
using ServingGraphs = std::vector<std::pair<std::string, Graph>>;

// The parameters that are in int8 or int4 when the parameters' type is i8 or kInt4 (ground/tensor/int4.h). Errors:
// Failure(unsupported), if there are none (for kInt4: none in int4), or for a model with experts.
std::vector<Int8Weight> int8_weights_of(const ServingGraphs& graphs, DType parameter);

// The part of a weight that each device of a serving_mesh has: some of its outputs, in one piece, with all that their
// sums take. So a row has its own scale on whichever device it is, and its groups are whole. On a trivial mesh: all of it.
// Errors: Failure(unsupported): the part would cut a panel of int4 (ground/tensor/int4.h).
Int8Weight part_of_weight(const Int8Weight& weight, const Mesh& mesh);

// `parameter`: the storage type of parameters; i8 and kInt4: of int8_weights_of, and the others have f32. `compute`: of
// all computation but of products with weights in int8 or int4; products are summed in f32. Caches have their graphs'
// types. `mesh`: a serving_mesh, over which the model is cut (serving_layouts.h).
// Errors: Failure(invalid); those of cache_layout, int8_weights_of and part_of_weight.
Program serving_program(const std::string& name, const ServingGraphs& graphs, const Mesh& mesh, DType parameter,
                        DType compute, const Target& target, const WorkspaceOf& workspace_of);

}  // namespace systole
