#pragma once
// Generation as a Program: prefill of one sequence into a slot, one function per bucket of lengths, and decode of one
// token for all slots, over one cache that each takes and gives back in place. Planned memory covers the largest of
// them.
//
// Values (besides the parameters, by their names):
//   cache             "cache.k", "cache.v": the last dims of the graphs' own, all slots
//   inputs, outputs   "<function>/<name>": what the function's graph takes besides, and its "logits"
// Functions, each with a schedule of its name: "prefill.<bucket>" and "decode".

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "describe/graph/partition/builder.h"

namespace systole {

// Of one model, one number of slots and one cache length (describe/models/model.h), in f32.
struct ServingGraphs {
  std::vector<std::pair<std::int64_t, Graph>> prefill;  // bucket, graph
  Graph decode;
};

// `parameter`: the type that parameters are kept in; everything is computed in f32, caches included.
// Errors: Failure(invalid); unsupported for a mesh of more than one device.
Program serving_program(const std::string& name, const ServingGraphs& graphs, const Mesh& mesh, DType parameter,
                        const Target& target, const WorkspaceOf& workspace_of);

}  // namespace systole
