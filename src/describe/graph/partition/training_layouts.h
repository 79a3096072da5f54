#pragma once
// How training lies on a mesh: the batch, each parameter where it is stored and where it is read, its gradient and its
// optimizer state.
//
// Axes named in a rule for "batch" cut the rows: on them gradients are terms of a sum. One of them may also store
// things in parts ("fsdp"): the optimizer's state alone, with the gradients, or with the parameters too (the three
// stages of Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models", 2020); with an
// axis "data" beside it this is hybrid: parts within a group, copies between groups. Other axes cut dims by name
// (Megatron's columns and rows, and the sequence between them: Korthikanti et al., 2022).
//
// The axis "context" cuts rows along their tokens, which come in zigzag order (zigzag.h): parameters are whole on it,
// and their gradients terms of a sum, as on axes that cut rows.
//
// "expert" does both: experts lie apart along it, each device's with all of their gradient, and everything else has
// rows of its own (Lepikhin et al., "GShard", arXiv:2006.16668, figure 3).

#include <string>
#include <string_view>
#include <vector>

#include "describe/graph/partition/choose.h"
#include "describe/graph/zigzag.h"

namespace systole {

// Parameters of these names are cut so, and in no other way.
struct ParameterCut {
  std::string names;                                                   // a glob: "blocks.*.mlp.up"
  std::vector<std::pair<std::string, std::vector<std::string>>> dims;  // name of a dim, axes that cut it
};

struct ShardingStrategy {
  enum class Stored { nothing, state, gradients, parameters };
  // Of an axis the names of dims that it cuts, the first that a tensor has. Axes that the mesh lacks do nothing.
  std::vector<AxisRule> rules{{"data", {"batch"}},
                              {"fsdp", {"batch"}},
                              {kContextAxis, {"seq"}},
                              {"expert", {"expert", "batch"}},
                              {"model", {"heads", "kv_heads", "mlp", "vocab", "seq"}}};
  std::string store_axis = "fsdp";
  Stored stored = Stored::parameters;  // in parts along it
  ContextKeys context_keys = ContextKeys::all_gather;
  std::vector<ParameterCut> parameters;
};
const char* name_of(ShardingStrategy::Stored stored);  // "parameters"

// The mesh without its axes of size 1.
Mesh without_single_axes(const Mesh& mesh);

class TrainingLayouts {
 public:
  // REQUIRES: no axis of size 1; `strategy` outlives this.
  TrainingLayouts(Mesh mesh, const ShardingStrategy& strategy);

  const Mesh& mesh() const { return mesh_; }
  std::span<const AxisRule> rules() const { return strategy_.rules; }
  std::int64_t row_parts() const;  // in how many parts rows are cut
  bool cuts_rows(std::size_t axis) const;
  bool cuts_tokens(std::size_t axis) const { return mesh_.axes()[axis].name == kContextAxis; }
  bool cuts_only_rows(std::size_t axis) const;  // parameters that it cuts are gathered where they are read
  bool stores(std::size_t axis) const;          // something is stored in parts along it

  // Errors: invalid, naming a rule that matches no parameter (with the nearest names), two that match one, a dim that a
  // parameter does not have, that a repeat slices, or that the axes which cut what is read do not divide.
  Status check(std::span<const Parameter> parameters) const;

  Layout whole() const { return Layout::whole(mesh_); }
  Layout rows(const Type& type) const;  // of a tensor of rows, and of their tokens; a scalar is whole
  Layout read(const Parameter& p) const;
  Layout parameter(const Parameter& p) const;
  Layout gradient(const Parameter& p) const;  // while microbatches are added up
  Layout reduced(const Parameter& p) const { return state(p); }
  Layout state(const Parameter& p) const;

 private:
  using Stored = ShardingStrategy::Stored;
  Layout in_parts(const Parameter& p) const;  // read(p), and cut along the store axis
  const ParameterCut* rule_of(const Parameter& p) const;

  Mesh mesh_;
  const ShardingStrategy& strategy_;
};

}  // namespace systole
