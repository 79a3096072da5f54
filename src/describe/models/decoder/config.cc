#include "describe/models/decoder/config.h"

#include <algorithm>

#include "describe/models/decoder/parameters.h"
#include "describe/models/sizes.h"
#include "describe/spec/families/decoder_rules.h"
#include "ground/base/nearest.h"

namespace systole {
namespace {

void check_lora(const DecoderSpec& config) {
  const AdaptersSpec& lora = config.adapters;
  if (lora.rank < 0) fail(error(ErrorKind::invalid, "model.adapters.rank is {}, must not be negative", lora.rank));
  std::vector<std::string> names;
  for (const Projection& p : decoder_projections()) {
    if (has_projection(config, p)) names.emplace_back(p.name);
  }
  for (const std::string& target : lora.targets) {
    if (std::find(names.begin(), names.end(), target) != names.end()) continue;
    fail(
        key_error(ErrorKind::invalid, "adapters", "the model has no '{}'", target).hinted(nearest_hint(target, names)));
  }
}

// Documents are already checked for these ranges (describe/spec/schema_model_moe.cc).
void check_ranges(const ExpertsSpec& moe) {
  if (moe.experts == 0) return;
  require_positive("moe.experts", moe.experts);
  require_positive("moe.top_k", moe.top_k);
  require_positive("moe.every", moe.every);
  if (!(moe.capacity_factor > 0))
    fail(error(ErrorKind::invalid, "model.moe.capacity_factor is {}, must be above 0", moe.capacity_factor));
  if (!(moe.scale > 0)) fail(error(ErrorKind::invalid, "model.moe.scale is {}, must be above 0", moe.scale));
  if (moe.group < 0 || moe.shared_experts < 0 || moe.dense_layers < 0 || !(moe.balance >= 0))
    fail(error(ErrorKind::invalid, "model.moe.group, shared_experts, dense_layers and balance must not be negative"));
}

void check_ranges(const LatentSpec& mla) {
  if (!mla.on()) return;
  require_positive("mla.nope", mla.nope);
  require_positive("mla.rope", mla.rope);
  require_positive("mla.value", mla.value);
}

}  // namespace

DecoderSpec checked(DecoderSpec config) {
  if (config.kv_heads == 0) config.kv_heads = config.heads;
  if (config.mlp == 0) config.mlp = 4 * config.width;
  require_positive("layers", config.layers);
  require_positive("width", config.width);
  require_positive("heads", config.heads);
  require_positive("kv_heads", config.kv_heads);
  require_positive("mlp", config.mlp);
  require_positive("vocabulary", config.vocabulary);
  require_positive("context", config.context);
  if (config.head == 0) {
    require_divides("heads", config.heads, "width", config.width);
    config.head = config.width / config.heads;
  }
  require_positive("head", config.head);
  require_divides("kv_heads", config.kv_heads, "heads", config.heads);
  if (config.window < 0) fail(error(ErrorKind::invalid, "model.window is {}, must not be negative", config.window));
  require_share("dropout", config.dropout);
  if (config.position == Position::rotary && config.head % 2 != 0) {
    fail(error(ErrorKind::invalid, "rotary positions need an even number of dims a head, not {}", config.head)
             .hinted("another model.heads or model.head, or model.position: learned"));
  }
  check_lora(config);
  check_ranges(config.moe);
  check_ranges(config.mla);
  std::vector<BrokenRule> broken;
  check_experts(config, broken);
  check_latent(config, broken);
  refuse(broken);
  return config;
}

std::vector<LayerGroup> layer_groups(const DecoderSpec& config) {
  std::vector<LayerGroup> groups;
  if (config.moe.experts == 0) return {{"block", 0, config.layers, {config}}};
  const std::int64_t first = config.moe.dense_layers, every = config.moe.every;
  DecoderSpec dense = config;
  dense.moe = {};
  dense.mlp = config.moe.dense_mlp;
  if (first > 0) groups.push_back({"dense", 0, first, {dense}});
  std::vector<DecoderSpec> period(static_cast<std::size_t>(every - 1), dense);
  period.push_back(config);
  groups.push_back({"block", first, (config.layers - first) / every, std::move(period)});
  return groups;
}

}  // namespace systole
