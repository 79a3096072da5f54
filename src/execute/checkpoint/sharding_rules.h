#pragma once
// Shardings of a checkpoint's tensors, by rules over their names: "blocks.*.mlp.up={}{model}".

#include <string>
#include <vector>

#include "execute/checkpoint/manifest.h"
#include "ground/mesh/sharding.h"

namespace systole::checkpoint {

struct ShardingRule {
  std::string glob;  // of tensor names
  Sharding sharding;
};
// Errors: invalid.
Result<std::vector<ShardingRule>> read_sharding_rules(const std::vector<std::string>& texts);

// By the first rule that matches. If none does, the first dim is sharded on every axis, as with fully sharded state.
Sharding sharding_by(const std::vector<ShardingRule>& rules, const TensorEntry& tensor, const Mesh& mesh);

}  // namespace systole::checkpoint
