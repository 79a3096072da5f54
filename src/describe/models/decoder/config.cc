#include "describe/models/decoder/config.h"

#include <algorithm>

#include "describe/models/decoder/parameters.h"
#include "describe/models/sizes.h"
#include "ground/base/nearest.h"

namespace systole {
namespace {

void check_lora(const DecoderConfig& config) {
  const LoraConfig& lora = config.lora;
  if (lora.rank < 0) fail(error(ErrorKind::invalid, "model.adapters.rank is {}, must not be negative", lora.rank));
  std::vector<std::string> names;
  for (const Projection& p : decoder_projections()) {
    if (has_projection(config, p)) names.emplace_back(p.name);
  }
  for (const std::string& target : lora.targets) {
    if (std::find(names.begin(), names.end(), target) != names.end()) continue;
    fail(error(ErrorKind::invalid, "adapters: the model has no '{}'", target).hinted(nearest_hint(target, names)));
  }
}

void check_experts(const DecoderConfig& config) {
  const ExpertsConfig& experts = config.experts;
  if (experts.count == 0) return;
  require_positive("moe.experts", experts.count);
  require_positive("moe.top_k", experts.top_k);
  if (experts.top_k > experts.count) {
    fail(error(ErrorKind::invalid, "model.moe.top_k: {} of model.moe.experts: {}", experts.top_k, experts.count)
             .hinted(fmt::format("top_k may be 1 to {}", experts.count)));
  }
  if (!(experts.capacity_factor > 0))
    fail(error(ErrorKind::invalid, "model.moe.capacity_factor is {}, must be above 0", experts.capacity_factor));
  if (!(experts.scale > 0)) fail(error(ErrorKind::invalid, "model.moe.scale is {}, must be above 0", experts.scale));
  if (experts.group < 0 || experts.shared < 0 || !(experts.balance >= 0))
    fail(error(ErrorKind::invalid, "model.moe.group, shared_experts and balance must not be negative"));
  if (experts.group > 0) require_divides("moe.group", experts.group, "context", config.context);
  if (config.bias) {
    fail(error(ErrorKind::unsupported, "model.bias: experts have no biases").hinted("model.bias: false"));
  }
}

void check_dense_layers(const DecoderConfig& config) {
  const ExpertsConfig& experts = config.experts;
  if (experts.count == 0) return;
  if (experts.dense_layers < 0 || experts.dense_layers >= config.layers) {
    fail(error(ErrorKind::invalid, "model.moe.dense_layers: {} of {} layers", experts.dense_layers, config.layers)
             .hinted("fewer than the layers; all of them is a model without experts"));
  }
  require_positive("moe.every", experts.every);
  const std::int64_t others = config.layers - experts.dense_layers;
  if (others % experts.every != 0) {
    fail(error(ErrorKind::invalid, "model.moe.every: {} layers are no multiple of {}", others, experts.every)
             .hinted("model.layers less model.moe.dense_layers is a multiple of model.moe.every"));
  }
  if (experts.dense_layers > 0 || experts.every > 1) require_positive("moe.dense_mlp", experts.dense_mlp);
}

void check_latent(const DecoderConfig& config) {
  const LatentConfig& latent = config.latent;
  if (!latent.on()) return;
  require_positive("mla.nope", latent.nope);
  require_positive("mla.rope", latent.rope);
  require_positive("mla.value", latent.value);
  if (latent.rope % 2 != 0 || config.position != ModelSpec::Position::rotary)
    fail(error(ErrorKind::invalid, "model.mla.rope: an even number of a head's turn by rotary positions"));
  if (latent.value > latent.nope + latent.rope)
    fail(error(ErrorKind::unsupported, "model.mla.value is {}, wider than nope + rope", latent.value));
  if (config.kv_heads != config.heads || config.bias || config.qk_norm || config.lora.rank > 0)
    fail(error(ErrorKind::unsupported, "model.mla with kv_heads, bias, qk_norm or adapters of its own"));
}

}  // namespace

DecoderConfig checked(DecoderConfig config) {
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
  if (config.position == ModelSpec::Position::rotary && config.head % 2 != 0) {
    fail(error(ErrorKind::invalid, "rotary positions need an even number of dims a head, not {}", config.head)
             .hinted("another model.heads or model.head, or model.position: learned"));
  }
  check_lora(config);
  check_experts(config);
  check_dense_layers(config);
  check_latent(config);
  return config;
}

std::vector<LayerGroup> layer_groups(const DecoderConfig& config) {
  std::vector<LayerGroup> groups;
  if (config.experts.count == 0) return {{"block", 0, config.layers, {config}}};
  const std::int64_t first = config.experts.dense_layers, every = config.experts.every;
  DecoderConfig dense = config;
  dense.experts = {};
  dense.mlp = config.experts.dense_mlp;
  if (first > 0) groups.push_back({"dense", 0, first, {dense}});
  std::vector<DecoderConfig> period(static_cast<std::size_t>(every - 1), dense);
  period.push_back(config);
  groups.push_back({"block", first, (config.layers - first) / every, std::move(period)});
  return groups;
}

DecoderConfig decoder_config(const ModelSpec& spec) {
  DecoderConfig config;
  config.family = spec.family == ModelSpec::Family::llama ? "llama" : "gpt";
  config.layers = spec.layers;
  config.width = spec.width;
  config.heads = spec.heads;
  config.kv_heads = spec.kv_heads;
  config.head = spec.head;
  config.mlp = spec.mlp;
  config.window = spec.window;
  config.experts = {spec.moe.experts,  spec.moe.top_k,          spec.moe.capacity_factor, spec.moe.dropless,
                    spec.moe.group,    spec.moe.shared_experts, spec.moe.normalize,       spec.moe.balance,
                    spec.moe.scores,   spec.moe.scale,          spec.moe.dense_layers,    spec.moe.every,
                    spec.moe.dense_mlp};
  config.latent = {spec.mla.q_rank, spec.mla.kv_rank, spec.mla.nope, spec.mla.rope, spec.mla.value};
  config.qk_norm = spec.qk_norm;
  config.parallel = spec.parallel_blocks;
  config.gated = spec.gated;
  config.vocabulary = spec.vocabulary;
  config.context = spec.context;
  config.norm = spec.norm;
  config.activation = spec.activation;
  config.eps = spec.eps;
  config.position = spec.position;
  config.theta = spec.theta;
  if (const ModelSpec::RopeScaling& r = spec.rope_scaling; r.kind == ModelSpec::RopeScaling::Kind::llama3) {
    config.rope_scaling = RotaryScaling{r.factor, r.low_freq_factor, r.high_freq_factor, r.original_context};
  }
  config.bias = spec.bias;
  config.tied = spec.tied;
  config.dropout = spec.dropout;
  config.lora.rank = spec.adapter_rank;
  config.lora.scale = spec.adapter_scale;
  return config;
}

}  // namespace systole
