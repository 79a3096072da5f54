#include "execute/checkpoint/sharding_rules.h"

#include <fnmatch.h>

namespace systole::checkpoint {

Result<std::vector<ShardingRule>> read_sharding_rules(const std::vector<std::string>& texts) {
  std::vector<ShardingRule> rules;
  for (const std::string& text : texts) {
    const std::size_t at = text.find('=');
    if (at == text.npos || at == 0) {
      return error(ErrorKind::invalid, "--sharding '{}' names no tensors", text)
          .hinted("as in --sharding 'blocks.*.mlp.up={}{model}'");
    }
    rules.push_back({text.substr(0, at), TRY(Sharding::parse(text.substr(at + 1)))});
  }
  return rules;
}

Sharding sharding_by(const std::vector<ShardingRule>& rules, const TensorEntry& tensor, const Mesh& mesh) {
  for (const ShardingRule& rule : rules) {
    if (::fnmatch(rule.glob.c_str(), tensor.name.c_str(), FNM_NOESCAPE) == 0) return rule.sharding;
  }
  Sharding sharding = Sharding::replicated(tensor.shape.size());
  if (tensor.shape.empty()) return sharding;
  for (const Axis& axis : mesh.axes()) sharding.dims[0].push_back(axis.name);
  return sharding;
}

}  // namespace systole::checkpoint
