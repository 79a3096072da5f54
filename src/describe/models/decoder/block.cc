#include "describe/models/decoder/block.h"

#include <algorithm>

#include "describe/models/activation.h"

namespace systole {
Value decoder_norm(const DecoderSpec& config, Value x, Value scale, const std::optional<Value>& bias) {
  if (config.norm == Norm::rms) return rms_norm(x, scale, config.eps).y;
  return layer_norm(x, scale, bias ? *bias : full_like(scale, 0), config.eps).y;
}

std::vector<DecoderBlock> DecoderBlock::of(Layers& layers, const LayerGroup& group, const Parameters& outer,
                                           std::span<const Parameter> parameters,
                                           const std::optional<DropoutKey>& key) {
  std::vector<Stack> stacks = Stack::of_period(layers, outer, parameters, "blocks.",
                                               {key, group.period[0].dropout, 1, 2}, group.first, group.size());
  std::vector<DecoderBlock> blocks;
  for (std::size_t j = 0; j < stacks.size(); ++j) blocks.push_back(DecoderBlock(group.period[j], std::move(stacks[j])));
  return blocks;
}

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
  Value y = stack_.project(x, name, in, out);
  if (adapt_) y = adapt_(name, x, y);
  if (!has_adapter(config_, *found)) return y;
  const Value low = contract(x, stack_[name + ".lora_a"], "bs" + in + "," + in + "r->bsr");
  const Value high = contract(low, stack_[name + ".lora_b"], "bsr,r" + out + "->bs" + out);
  return add(y, config_.adapters.scale == 1 ? high : scale(high, config_.adapters.scale));
}

BlockResult DecoderBlock::feed_forward(Value normed, const ExpertTokens& tokens) const {
  if (config_.moe.experts > 0) {
    const ExpertResult mixed = mix_experts(config_, stack_, normed, tokens);
    return {mixed.y, mixed.balance, mixed.choices, mixed.dropped};
  }
  const auto hidden = [&] { return project(normed, "mlp.up").named("mlp.hidden"); };
  Value act = activate(config_.activation, config_.gated ? project(normed, "mlp.gate").named("mlp.gate") : hidden());
  if (config_.gated) act = mul(act, hidden());
  return {project(act.named("mlp.act"), "mlp.down").named("mlp.out"), {}, {}, {}};
}

Value DecoderBlock::normed_heads(Value heads, const std::string& name) const {
  return config_.qk_norm ? rms_norm(heads, stack_["attn." + name + ".scale"], config_.eps).y : heads;
}

Value DecoderBlock::attention(Value normed, const Attend& attend) const {
  const Value q = project(normed, "attn.q").named("attn.q");
  const Value k = project(normed, "attn.k").named("attn.k");
  const Value v = project(normed, "attn.v").named("attn.v");
  const Value placed = attend.place(normed_heads(k, "k_norm"));
  const Value o = attend.of(attend.place(normed_heads(q, "q_norm")), placed, v).named("attn.o");
  return project(o, "attn.o").named("attn.out");
}

Value DecoderBlock::latent_attention(Value normed, const Attend& attend) const {
  const LatentSpec& z = config_.mla;
  const auto down = [&](const std::string& name) {
    const Value low = contract(normed, stack_["attn." + name + "_down"], "bse,er->bsr");
    return rms_norm(low, stack_["attn." + name + "_norm.scale"], config_.eps).y;
  };
  const auto up = [&](Value low, const std::string& name) {
    return contract(low, stack_["attn." + name], "bsr,rhd->bshd").named("attn." + name);
  };
  const Value c = down("kv").named("attn.c"), l = z.q_rank > 0 ? down("q") : normed;
  const Value q = up(l, "q"), k = up(c, "k"), v = up(c, "v");
  const Value parts[] = {slice_dim(q, 3, 0, z.nope), attend.place(slice_dim(q, 3, z.nope, z.nope + z.rope))};

  const Type one_head(normed.dtype(), {normed.type().size(0), normed.type().size(1), 1, z.rope},
                      {"batch", "seq", "", "head"});
  const Value r = contract(normed, stack_["attn.k_rope"], "bse,ed->bsd");
  const int rows_and_head[] = {0, 1, 3};
  Type of_heads = k.type();
  of_heads.shape[3] = z.rope;
  const Value placed = reshape(attend.place(reshape(r, one_head)), r.type());
  const Value keys[] = {k, broadcast(placed, of_heads, rows_and_head)};

  const Ints none{0, 0, 0, 0}, zeros{0, 0, 0, z.nope + z.rope - z.value};
  const Value wide = zeros[3] == 0 ? v : pad(v, none, zeros, 0);
  const Value o = slice_dim(attend.of(concatenate(parts, 3), concatenate(keys, 3), wide), 3, 0, z.value);
  return contract(o.named("attn.o"), stack_["attn.o"], "bshd,hde->bse").named("attn.out");
}

BlockResult DecoderBlock::operator()(Value x, const Attend& attend, const ExpertTokens& tokens) const {
  x.named("block.in");
  const Value n1 = norm(x, "norm1").named("attn.norm");
  const Value attended = config_.mla.on() ? latent_attention(n1, attend) : attention(n1, attend);
  const Value mid = add(x, stack_.drop(attended, 0));
  const Value n2 = config_.parallel_blocks ? n1 : norm(mid, "norm2").named("mlp.norm");
  BlockResult fed = feed_forward(n2, tokens);
  fed.x = add(mid, stack_.drop(fed.x, 1));
  return fed;
}

}  // namespace systole
