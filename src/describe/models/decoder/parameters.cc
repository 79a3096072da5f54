// Initial values as in GPT-2: weights and embeddings normal(0.02); weights that write to the residual stream are
// divided by sqrt(2 layers) ("we scale the weights of residual layers at initialization by a factor of 1/√N", section
// 2.3); biases 0, scales 1. Weight decay applies to matrices only.

#include "describe/models/decoder/parameters.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "describe/models/layers.h"
#include "describe/models/parameter_list.h"

namespace systole {
namespace {

constexpr Projection kProjections[] = {
    {"attn.q", "e", "hd", false}, {"attn.k", "e", "nd", false},  {"attn.v", "e", "nd", false},
    {"attn.o", "hd", "e", true},  {"mlp.gate", "e", "m", false}, {"mlp.up", "e", "m", false},
    {"mlp.down", "m", "e", true},
};

constexpr double kStddev = 0.02;

// `stack` is the prefix of the names: "blocks.{layer}.".
void list_projection(ParameterList& list, const std::string& stack, const Projection& p, const DecoderSpec& config) {
  const std::string name = stack + p.name;
  const double shrink = p.residual ? 1 / std::sqrt(2.0 * static_cast<double>(config.layers)) : 1;
  list.projection(name, p.in, p.out, kStddev * shrink, config.bias);
  if (has_adapter(config, p)) list.adapter(name, p.in, p.out);
}

// The projections of one part of a block, "attn." or "mlp.".
void list_part(ParameterList& list, const std::string& stack, std::string_view part, const DecoderSpec& config) {
  for (const Projection& p : decoder_projections()) {
    if (std::string_view(p.name).starts_with(part) && has_projection(config, p))
      list_projection(list, stack, p, config);
  }
}

void list_latent(ParameterList& list, const std::string& attn, const DecoderSpec& config) {
  const std::string from = config.mla.q_rank > 0 ? "i" : "e";
  if (config.mla.q_rank > 0) {
    list.weight(attn + "q_down", "lei", kStddev);
    list.scale(attn + "q_norm.scale", "li");
  }
  list.weight(attn + "q", "l" + from + "hd", kStddev);
  list.weight(attn + "kv_down", "lej", kStddev);
  list.scale(attn + "kv_norm.scale", "lj");
  list.weight(attn + "k_rope", "let", kStddev);
  list.weight(attn + "k", "ljhc", kStddev);
  list.weight(attn + "v", "ljhu", kStddev);
  list.weight(attn + "o", "lhue", kStddev / std::sqrt(2.0 * static_cast<double>(config.layers)));
}

void list_attention(ParameterList& list, const std::string& stack, const DecoderSpec& config) {
  if (config.mla.on()) return list_latent(list, stack + "attn.", config);
  list_part(list, stack, "attn.", config);
  if (!config.qk_norm) return;
  list.scale(stack + "attn.q_norm.scale", "ld");
  list.scale(stack + "attn.k_norm.scale", "ld");
}

// Initial values as for a single feed-forward part.
void list_experts(ParameterList& list, const std::string& stack, const DecoderSpec& config) {
  if (config.moe.experts == 0) return;
  const std::string moe = stack + "moe.";
  const double shrunk = kStddev / std::sqrt(2.0 * static_cast<double>(config.layers));
  list.weight(moe + "router", "leo", kStddev);
  if (config.gated) list.weight(moe + "gate", "lxem", kStddev);
  list.weight(moe + "up", "lxem", kStddev);
  list.weight(moe + "down", "lxme", shrunk);
  if (config.moe.shared_experts == 0) return;
  if (config.gated) list.weight(moe + "shared.gate", "les", kStddev);
  list.weight(moe + "shared.up", "les", kStddev);
  list.weight(moe + "shared.down", "lse", shrunk);
}

void list_norm(ParameterList& list, const std::string& name, const std::string& dims, const DecoderSpec& config) {
  list.scale(name + ".scale", dims);
  if (has_norm_bias(config)) list.bias(name + ".bias", dims);
}

}  // namespace

std::span<const Projection> decoder_projections() { return kProjections; }

bool has_projection(const DecoderSpec& config, const Projection& projection) {
  const std::string_view name = projection.name;
  if (config.moe.experts > 0 && name.starts_with("mlp.")) return false;
  if (config.mla.on() && name.starts_with("attn.")) return false;
  return config.gated || name != "mlp.gate";
}

bool has_adapter(const DecoderSpec& config, const Projection& projection) {
  const std::vector<std::string>& targets = config.adapters.targets;
  if (config.adapters.rank == 0 || !has_projection(config, projection)) return false;
  return targets.empty() || std::find(targets.begin(), targets.end(), projection.name) != targets.end();
}

bool has_norm_bias(const DecoderSpec& config) { return config.bias && config.norm == Norm::layer; }

namespace {

ParameterList::Dims dims_of(const DecoderSpec& config, std::int64_t layers) {
  return {{'l', {"layer", layers}},
          {'e', {"embed", config.width}},
          {'h', {"heads", config.heads}},
          {'n', {"kv_heads", config.kv_heads}},
          {'d', {"head", config.mla.on() ? config.mla.nope + config.mla.rope : config.head}},
          {'i', {"q_rank", config.mla.q_rank}},
          {'j', {"kv_rank", config.mla.kv_rank}},
          {'c', {"head", config.mla.nope}},
          {'t', {"head", config.mla.rope}},
          {'u', {"head", config.mla.value}},
          {'m', {"mlp", config.mlp}},
          {'s', {"mlp", config.mlp * config.moe.shared_experts}},
          {'x', {"expert", config.moe.experts}},
          {'o', {"router", config.moe.experts}},
          {'v', {"vocab", config.vocabulary}},
          {'p', {"position", config.context}},
          {'r', {"lora", config.adapters.rank}}};
}

void append(std::vector<Parameter>& all, std::vector<Parameter> more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

}  // namespace

std::vector<Parameter> decoder_parameters(const DecoderSpec& config) {
  const bool trained = config.adapters.rank == 0;
  ParameterList first(dims_of(config, 0), trained), last(dims_of(config, 0), trained);
  first.weight("embed.tokens", "ve", kStddev);
  if (config.position == Position::learned) first.weight("embed.positions", "pe", kStddev);
  std::vector<Parameter> all = first.take();
  for (const LayerGroup& group : layer_groups(config)) {
    for (std::int64_t j = 0; j < group.size(); ++j) {
      const DecoderSpec& layer = group.period[static_cast<std::size_t>(j)];
      ParameterList list(dims_of(layer, group.count), trained);
      const std::string stack = stack_name("blocks.", group.first + j, group.size());
      list_norm(list, stack + "norm1", "le", layer);
      list_attention(list, stack, layer);
      if (!config.parallel_blocks) list_norm(list, stack + "norm2", "le", layer);
      list_part(list, stack, "mlp.", layer);
      list_experts(list, stack, layer);
      append(all, list.take());
    }
  }
  list_norm(last, "norm", "e", config);
  if (!config.tied) last.weight("head", "ve", kStddev);
  append(all, last.take());
  return all;
}

}  // namespace systole
