#pragma once
// The layouts of training on a mesh: of the batch, of each parameter as stored and as read, of its gradient and of its
// optimizer state. The default axes:
//
// * "data", "fsdp": data parallelism. They shard the rows of the batch; gradients are partial sums on them. "fsdp" also
//   shards memory: optimizer state, then gradients, then parameters (stages 1 to 3 of Rajbhandari et al., "ZeRO: Memory
//   Optimizations Toward Training Trillion Parameter Models", 2020). Both axes together are hybrid sharding: sharded
//   within a group, replicated between groups.
// * "model": tensor parallelism. It shards dims by name (Megatron's columns and rows, and the sequence between them:
//   Korthikanti et al., 2022).
// * "context": shards the tokens of a row, in zigzag order (zigzag.h). Parameters are replicated on it, and gradients
//   are partial sums.
// * "expert": shards experts, whose gradients are complete on their device; for everything else it shards the rows
//   (Lepikhin et al., "GShard", arXiv:2006.16668, figure 3).

#include <string>
#include <string_view>
#include <vector>

#include "describe/ops/zigzag.h"
#include "describe/partition/choose.h"
#include "ground/mesh/sharding.h"

namespace systole {

// Overrides the sharding of parameters by name.
struct ParameterCut {
  std::string names;                                                   // a glob: "blocks.*.mlp.up"
  std::vector<std::pair<std::string, std::vector<std::string>>> dims;  // name of a dim, axes that shard it
};

struct ShardingStrategy {
  using Stored = ZeroStage;
  // Per axis, the dims that it shards: the first name that a tensor has. Axes that the mesh lacks are ignored.
  std::vector<AxisRule> rules{{"data", {"batch"}},
                              {"fsdp", {"batch"}},
                              {kContextAxis, {"seq"}},
                              {"expert", {"expert", "batch"}},
                              {"model", {"heads", "kv_heads", "mlp", "vocab", "seq"}}};
  std::string store_axis = "fsdp";
  Stored stored = Stored::parameters;  // along store_axis
  ContextKeys context_keys = ContextKeys::all_gather;
  std::vector<ParameterCut> parameters;
};

// The mesh without its axes of size 1.
Mesh without_single_axes(const Mesh& mesh);

class TrainingLayouts {
 public:
  // REQUIRES: no axis of size 1; `strategy` outlives this.
  TrainingLayouts(Mesh mesh, const ShardingStrategy& strategy);

  const Mesh& mesh() const { return mesh_; }
  std::span<const AxisRule> rules() const { return strategy_.rules; }
  std::int64_t row_parts() const;  // number of parts of the batch's rows
  bool cuts_rows(std::size_t axis) const;
  bool cuts_tokens(std::size_t axis) const { return mesh_.axes()[axis].name == kContextAxis; }
  bool cuts_only_rows(std::size_t axis) const;  // parameters sharded along it are gathered where they are read
  bool stores(std::size_t axis) const;          // it is the store axis, and something is sharded along it

  // Checks the rules of ShardingStrategy::parameters. Errors: invalid, naming a rule that matches no parameter (with
  // the nearest names), two rules that match one parameter, or a dim that the parameter lacks, that a repeat slices, or
  // that axes other than data-parallel ones do not divide.
  Status check(std::span<const Parameter> parameters) const;

  Layout whole() const { return Layout::whole(mesh_); }
  Layout rows(const Type& type) const;  // of a tensor of the batch: by rows and tokens; a scalar is replicated
  Layout read(const Parameter& p) const;
  Layout parameter(const Parameter& p) const;
  Layout gradient(const Parameter& p) const;  // while microbatches accumulate
  Layout reduced(const Parameter& p) const { return state(p); }
  Layout state(const Parameter& p) const;

 private:
  using Stored = ShardingStrategy::Stored;
  Layout in_parts(const Parameter& p) const;  // read(p), also sharded along the store axis
  const ParameterCut* rule_of(const Parameter& p) const;

  Mesh mesh_;
  const ShardingStrategy& strategy_;
};

}  // namespace systole
