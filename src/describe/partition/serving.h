#pragma once
// Serving as a Program: functions that compute the next tokens of sequences, for several numbers of sequences and of
// tokens, and the last hidden states of whole texts. All update one cache of keys and values in place. Planned memory
// covers the largest of them.
//
// Values (besides the parameters, by their names):
//   cache             "cache.k", "cache.v" and other "cache.…" of the graphs, shared by all functions
//   parameter         those of adapters too, "lora.…" (describe/ir/served_adapters.h)
//   inputs, outputs   "<function>/<name>": other inputs of the function's graph, and its "logits" or "hidden"
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

// The parameters that are in int8 when the parameters' type is i8. Errors: Failure(unsupported), if there are none, or
// for a model with experts.
std::vector<Int8Weight> int8_weights_of(const ServingGraphs& graphs);

// `parameter`: the storage type of parameters; i8: of int8_weights_of, and the others have f32. `compute`: of all computation
// but of products with weights in int8; products are summed in f32. Caches have their graphs' types.
// Errors: Failure(invalid); unsupported for a mesh of more than one device; those of int8_weights_of.
Program serving_program(const std::string& name, const ServingGraphs& graphs, const Mesh& mesh, DType parameter,
                        DType compute, const Target& target, const WorkspaceOf& workspace_of);

}  // namespace systole
