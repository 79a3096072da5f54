// Initial values as in GPT-2: weights and embeddings normal(0.02), those that write to the residual stream divided by
// sqrt(2 layers) ("we scale the weights of residual layers at initialization by a factor of 1/√N", section 2.3), biases
// 0, scales 1. Weight decay on matrices only.

#include "describe/models/decoder/parameters.h"

#include <algorithm>
#include <cmath>

#include "describe/models/parameter_list.h"

namespace systole {
namespace {

constexpr Projection kProjections[] = {
    {"attn.q", "e", "hd", false}, {"attn.k", "e", "nd", false},  {"attn.v", "e", "nd", false},
    {"attn.o", "hd", "e", true},  {"mlp.gate", "e", "m", false}, {"mlp.up", "e", "m", false},
    {"mlp.down", "m", "e", true},
};

constexpr double kStddev = 0.02;

void list_projection(ParameterList& list, const Projection& p, const DecoderConfig& config) {
  const std::string name = std::string("blocks.{layer}.") + p.name;
  const double shrink = p.residual ? 1 / std::sqrt(2.0 * static_cast<double>(config.layers)) : 1;
  list.projection(name, p.in, p.out, kStddev * shrink, config.bias);
  if (has_adapter(config, p)) list.adapter(name, p.in, p.out);
}

// The projections of a part of a block, "attn." or "mlp.".
void list_part(ParameterList& list, std::string_view part, const DecoderConfig& config) {
  for (const Projection& p : decoder_projections()) {
    if (std::string_view(p.name).starts_with(part) && has_projection(config, p)) list_projection(list, p, config);
  }
}

// Initial values as of one feed-forward part.
void list_experts(ParameterList& list, const DecoderConfig& config) {
  if (config.experts.count == 0) return;
  const std::string moe = "blocks.{layer}.moe.";
  const double shrunk = kStddev / std::sqrt(2.0 * static_cast<double>(config.layers));
  list.weight(moe + "router", "leo", kStddev);
  if (config.gated) list.weight(moe + "gate", "lxem", kStddev);
  list.weight(moe + "up", "lxem", kStddev);
  list.weight(moe + "down", "lxme", shrunk);
  if (config.experts.shared == 0) return;
  if (config.gated) list.weight(moe + "shared.gate", "les", kStddev);
  list.weight(moe + "shared.up", "les", kStddev);
  list.weight(moe + "shared.down", "lse", shrunk);
}

void list_norm(ParameterList& list, const std::string& name, const std::string& dims, const DecoderConfig& config) {
  list.scale(name + ".scale", dims);
  if (has_norm_bias(config)) list.bias(name + ".bias", dims);
}

}  // namespace

std::span<const Projection> decoder_projections() { return kProjections; }

bool has_projection(const DecoderConfig& config, const Projection& projection) {
  if (config.experts.count > 0 && std::string_view(projection.name).starts_with("mlp.")) return false;
  return config.gated || projection.name != std::string_view("mlp.gate");
}

bool has_adapter(const DecoderConfig& config, const Projection& projection) {
  const std::vector<std::string>& targets = config.lora.targets;
  if (config.lora.rank == 0 || !has_projection(config, projection)) return false;
  return targets.empty() || std::find(targets.begin(), targets.end(), projection.name) != targets.end();
}

bool has_norm_bias(const DecoderConfig& config) { return config.bias && config.norm == ModelSpec::Norm::layer; }

std::vector<Parameter> decoder_parameters(const DecoderConfig& config) {
  ParameterList list({{'l', {"layer", config.layers}},
                      {'e', {"embed", config.width}},
                      {'h', {"heads", config.heads}},
                      {'n', {"kv_heads", config.kv_heads}},
                      {'d', {"head", config.head}},
                      {'m', {"mlp", config.mlp}},
                      {'s', {"mlp", config.mlp * config.experts.shared}},
                      {'x', {"expert", config.experts.count}},
                      {'o', {"router", config.experts.count}},
                      {'v', {"vocab", config.vocabulary}},
                      {'p', {"position", config.context}},
                      {'r', {"lora", config.lora.rank}}},
                     config.lora.rank == 0);
  list.weight("embed.tokens", "ve", kStddev);
  if (config.position == ModelSpec::Position::learned) list.weight("embed.positions", "pe", kStddev);
  list_norm(list, "blocks.{layer}.norm1", "le", config);
  list_part(list, "attn.", config);
  if (!config.parallel) list_norm(list, "blocks.{layer}.norm2", "le", config);
  list_part(list, "mlp.", config);
  list_experts(list, config);
  list_norm(list, "norm", "e", config);
  if (!config.tied) list.weight("head", "ve", kStddev);
  return list.take();
}

}  // namespace systole
