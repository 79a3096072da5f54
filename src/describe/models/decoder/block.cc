#include "describe/models/decoder/block.h"

#include "describe/models/activation.h"

namespace systole {
namespace {

// A bias over the last dims of `like`.
Value broadcast_bias(Value bias, const Type& like) {
  std::vector<int> dims;
  for (int i = 0; i < bias.type().ndim(); ++i) dims.push_back(like.ndim() - bias.type().ndim() + i);
  return broadcast(bias, like.with(bias.dtype()), dims);
}

}  // namespace

Value decoder_norm(const DecoderConfig& config, Value x, Value scale, const std::optional<Value>& bias) {
  if (config.norm == ModelSpec::Norm::rms) return rms_norm(x, scale, config.eps).y;
  return layer_norm(x, scale, bias ? *bias : full_like(scale, 0), config.eps).y;
}

DecoderBlock::DecoderBlock(Layers& layers, const DecoderConfig& config, const Parameters& outer,
                           const std::optional<DropoutKey>& key)
    : config_(config) {
  for (const Parameter& p : decoder_parameters(config)) {
    if (const auto name = name_in_layer(p.name)) slices_.emplace(*name, layers.slice(*name, outer[p.name]));
  }
  if (!key) return;
  layer_ = layers.slice("layer", iota(*key->seed.graph, Type(DType::i64, {config.layers}, {"layer"}), 0));
  const Value seed = layers.share("seed", key->seed), step = layers.share("step", key->step);
  key_ = DropoutKey{seed, step, layers.share("row", key->row)};
}

Value DecoderBlock::norm(Value x, const std::string& name) const {
  const auto bias = slices_.find(name + ".bias");
  return decoder_norm(config_, x, parameter(name + ".scale"),
                      bias == slices_.end() ? std::nullopt : std::optional(bias->second));
}

Value DecoderBlock::project(Value x, const std::string& name) const {
  for (const Projection& p : decoder_projections()) {
    if (name != p.name) continue;
    const std::string in = p.in, out = p.out;
    Value y = contract(x, parameter(name), "bs" + in + "," + in + out + "->bs" + out);
    if (has_adapter(config_, p)) {
      const Value low = contract(x, parameter(name + ".lora_a"), "bs" + in + "," + in + "r->bsr");
      const Value high = contract(low, parameter(name + ".lora_b"), "bsr,r" + out + "->bs" + out);
      y = add(y, config_.lora.scale == 1 ? high : scale(high, config_.lora.scale));
    }
    return !config_.bias ? y : add(y, broadcast_bias(parameter(name + "_bias"), y.type()));
  }
  CHECK(false, "no projection '{}'", name);
}

Value DecoderBlock::drop(Value x, int site) const {
  if (!key_) return x;
  Graph& body = *x.graph;
  const Type scalar(DType::i64, {});
  const Value at = add(mul(*layer_, constant(body, scalar, 2)), constant(body, scalar, site));
  return drop_at(x, *key_, at, config_.dropout);
}

Value DecoderBlock::feed_forward(Value normed) const {
  const auto hidden = [&] { return project(normed, "mlp.up").named("mlp.hidden"); };
  Value act = activate(config_.activation, config_.gated ? project(normed, "mlp.gate").named("mlp.gate") : hidden());
  if (config_.gated) act = mul(act, hidden());
  return project(act.named("mlp.act"), "mlp.down").named("mlp.out");
}

Value DecoderBlock::operator()(Value x, const std::function<Value(Value q, Value k, Value v)>& attend) const {
  x.named("block.in");
  const Value n1 = norm(x, "norm1").named("attn.norm");
  const Value q = project(n1, "attn.q").named("attn.q");
  const Value k = project(n1, "attn.k").named("attn.k");
  const Value v = project(n1, "attn.v").named("attn.v");
  const Value o = attend(q, k, v).named("attn.o");
  const Value mid = add(x, drop(project(o, "attn.o").named("attn.out"), 1));
  const Value n2 = config_.parallel ? n1 : norm(mid, "norm2").named("mlp.norm");
  return add(mid, drop(feed_forward(n2), 2));
}

}  // namespace systole
