// gpt and llama: their defaults, and rules over several keys. Their presets are in decoder_presets.cc.
#include <algorithm>

#include "describe/spec/families/decoder_rules.h"
#include "describe/spec/families/families.h"
#include "describe/spec/rules_layout.h"

namespace systole {

void check_experts(const DecoderSpec& m, std::vector<BrokenRule>& broken) {
  const ExpertsSpec& moe = m.moe;
  const auto say = [&](const char* key, const std::string& message, std::string hint,
                       ErrorKind kind = ErrorKind::invalid) {
    broken.push_back({{key, "model.moe.experts"}, kind, message, std::move(hint)});
  };
  if (moe.experts == 0) return;
  if (moe.top_k > moe.experts)
    say("model.moe.top_k", fmt::format("a token cannot go to {} of {} experts", moe.top_k, moe.experts), "at most all");
  if (!divides(moe.group, m.context))
    say("model.moe.group", fmt::format("groups of {} tokens do not divide rows of {}", moe.group, m.context),
        "group may be " + divisors_of(m.context) + ", or leave it out: a group is a row");
  if (m.bias) say("model.bias", "experts have no biases here", "model.bias: false", ErrorKind::unsupported);
  if (moe.dense_layers > 0 && moe.dense_layers >= m.layers)
    say("model.moe.dense_layers", fmt::format("{} of {} layers: none has experts", moe.dense_layers, m.layers),
        "fewer, or no experts");
  const std::int64_t others = m.layers - moe.dense_layers;
  if (others > 0 && others % moe.every != 0)
    say("model.moe.every", fmt::format("{} layers are no multiple of {}", others, moe.every),
        "every may be " + divisors_of(others));
  if ((moe.dense_layers > 0 || moe.every > 1) != (moe.dense_mlp > 0))
    say("model.moe.dense_mlp",
        moe.dense_mlp == 0 ? "the width of layers without experts is missing" : "no layer is without experts",
        moe.dense_mlp == 0 ? "model.moe.dense_mlp" : "model.moe.dense_layers: 1, or take it out");
}

void check_latent(const DecoderSpec& m, std::vector<BrokenRule>& broken) {
  const LatentSpec& mla = m.mla;
  const auto say = [&](const char* key, const std::string& message, std::string hint,
                       ErrorKind kind = ErrorKind::invalid) {
    broken.push_back({{key, "model.mla.kv_rank"}, kind, message, std::move(hint)});
  };
  if (mla.kv_rank == 0) return;
  if (mla.rope % 2 != 0)
    say("model.mla.rope", fmt::format("rotary turns pairs of numbers, and there are {}", mla.rope), "64, as published");
  if (mla.value > mla.nope + mla.rope)
    say("model.mla.value", fmt::format("values of {} are wider than keys of {}", mla.value, mla.nope + mla.rope),
        "at most nope + rope", ErrorKind::unsupported);
  if (m.position != Position::rotary)
    say("model.position", "latent attention has rotary positions", "model.position: rotary");
  if (m.kv_heads != m.heads)
    say("model.kv_heads", "latent attention has a key for each head", "take model.kv_heads out");
  if (m.bias) say("model.bias", "latent attention has no biases", "model.bias: false");
  if (m.qk_norm) say("model.qk_norm", "latent attention has norms of its own", "model.qk_norm: false");
  if (m.adapters.rank > 0)
    say("model.adapters.rank", "latent attention has no adapters yet", "model.adapters.rank: 0",
        ErrorKind::unsupported);
}

namespace {

void check_attention(const DecoderSpec& m, std::vector<BrokenRule>& broken) {
  if (!divides(m.kv_heads, m.heads)) {
    broken.push_back({{"model.kv_heads", "model.heads"},
                      ErrorKind::invalid,
                      fmt::format("{} kv_heads do not divide {} heads", m.kv_heads, m.heads),
                      "kv_heads may be " + divisors_of(m.heads)});
  }
  if (m.position == Position::rotary && m.head % 2 != 0) {
    broken.push_back({{"model.position", "model.head", "model.heads", "model.width"},
                      ErrorKind::invalid,
                      fmt::format("rotary turns pairs of numbers, and a head has {} of them", m.head),
                      "choose width and heads so that width / heads is even, or an even model.head"});
  }
  const RopeScaling& r = m.rope_scaling;
  if (r.kind == RopeScaling::Kind::llama3 && r.low_freq_factor >= r.high_freq_factor) {
    broken.push_back({{"model.rope_scaling.high_freq_factor", "model.rope_scaling.low_freq_factor"},
                      ErrorKind::invalid,
                      fmt::format("high_freq_factor {} is not above low_freq_factor {}: nothing lies between fast and "
                                  "slow frequencies",
                                  r.high_freq_factor, r.low_freq_factor),
                      "Llama 3 has low_freq_factor: 1 and high_freq_factor: 4"});
  }
}

void check_sizes(const DecoderSpec& m, std::vector<BrokenRule>& broken) {
  if (m.adapters.rank > m.width && m.width > 0) {
    broken.push_back({{"model.adapters.rank"},
                      ErrorKind::invalid,
                      fmt::format("rank {} is above width {}", m.adapters.rank, m.width),
                      "8 to 64 is usual"});
  }
  const std::int64_t parts = std::max<std::int64_t>(1, m.moe.experts + m.moe.shared_experts);
  check_countable(m.layers, m.width, m.heads * m.head, static_cast<double>(m.mlp) * static_cast<double>(parts),
                  m.vocabulary + m.context, broken);
}

void decoder_rules(const ModelSpec& model, std::vector<BrokenRule>& broken) {
  const auto& m = model.as<DecoderSpec>();
  check_heads(m.head, m.heads, m.width, broken);
  check_attention(m, broken);
  check_mlp(m.width, m.mlp, m.mlp_ratio, broken);
  check_experts(m, broken);
  check_latent(m, broken);
  check_sizes(m, broken);
}

}  // namespace

std::vector<ModelFamily> DecoderSpec::families() {
  const ModelFamily gpt{.made = DecoderSpec{}, .defaults = {}, .presets = decoder_presets(), .rules = &decoder_rules};
  const ModelFamily llama{.made = DecoderSpec{.family = DecoderSpec::Family::llama},
                          .defaults = {{"model.norm", "rms"},
                                       {"model.position", "rotary"},
                                       {"model.activation", "silu"},
                                       {"model.gated", "true"},
                                       {"model.bias", "false"},
                                       {"model.tied", "false"}},
                          .rules = &decoder_rules};
  return {gpt, llama};
}

}  // namespace systole
