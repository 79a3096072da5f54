#include "describe/models/decoder/block.h"

#include <algorithm>

#include "describe/models/activation.h"

namespace systole {
Value decoder_norm(const DecoderConfig& config, Value x, Value scale, const std::optional<Value>& bias) {
  if (config.norm == ModelSpec::Norm::rms) return rms_norm(x, scale, config.eps).y;
  return layer_norm(x, scale, bias ? *bias : full_like(scale, 0), config.eps).y;
}

DecoderBlock::DecoderBlock(Layers& layers, const DecoderConfig& config, const Parameters& outer,
                           std::span<const Parameter> parameters, const std::optional<DropoutKey>& key)
    : config_(config), stack_(layers, outer, parameters, "blocks.", {key, config.dropout, 1, 2}) {}

Value DecoderBlock::norm(Value x, const std::string& name) const {
  return decoder_norm(config_, x, stack_[name + ".scale"],
                      has_norm_bias(config_) ? std::optional(stack_[name + ".bias"]) : std::nullopt);
}

Value DecoderBlock::project(Value x, const std::string& name) const {
  const auto projections = decoder_projections();
  const auto found =
      std::find_if(projections.begin(), projections.end(), [&](const Projection& p) { return name == p.name; });
  CHECK(found != projections.end(), "no projection '{}'", name);
  const std::string in = found->in, out = found->out;
  const Value y = stack_.project(x, name, in, out);
  if (!has_adapter(config_, *found)) return y;
  const Value low = contract(x, stack_[name + ".lora_a"], "bs" + in + "," + in + "r->bsr");
  const Value high = contract(low, stack_[name + ".lora_b"], "bsr,r" + out + "->bs" + out);
  return add(y, config_.lora.scale == 1 ? high : scale(high, config_.lora.scale));
}

BlockResult DecoderBlock::feed_forward(Value normed, const ExpertTokens& tokens) const {
  if (config_.experts.count > 0) {
    const ExpertResult mixed = mix_experts(config_, stack_, normed, tokens);
    return {mixed.y, mixed.balance};
  }
  const auto hidden = [&] { return project(normed, "mlp.up").named("mlp.hidden"); };
  Value act = activate(config_.activation, config_.gated ? project(normed, "mlp.gate").named("mlp.gate") : hidden());
  if (config_.gated) act = mul(act, hidden());
  return {project(act.named("mlp.act"), "mlp.down").named("mlp.out"), std::nullopt};
}

BlockResult DecoderBlock::operator()(Value x, const std::function<Value(Value q, Value k, Value v)>& attend,
                                     const ExpertTokens& tokens) const {
  x.named("block.in");
  const Value n1 = norm(x, "norm1").named("attn.norm");
  const Value q = project(n1, "attn.q").named("attn.q");
  const Value k = project(n1, "attn.k").named("attn.k");
  const Value v = project(n1, "attn.v").named("attn.v");
  const Value o = attend(q, k, v).named("attn.o");
  const Value mid = add(x, stack_.drop(project(o, "attn.o").named("attn.out"), 0));
  const Value n2 = config_.parallel ? n1 : norm(mid, "norm2").named("mlp.norm");
  const BlockResult fed = feed_forward(n2, tokens);
  return {add(mid, stack_.drop(fed.x, 1)), fed.balance};
}

}  // namespace systole
