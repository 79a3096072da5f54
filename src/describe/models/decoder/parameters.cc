// Initial values as in GPT-2: weights and embeddings normal(0.02), those that write to the residual stream divided by
// sqrt(2 layers) ("we scale the weights of residual layers at initialization by a factor of 1/√N", section 2.3), biases
// 0, scales 1. Adapters as in their paper's code: A uniform(1/sqrt(inputs)), B zero. Weight decay on matrices only.

#include "describe/models/decoder/parameters.h"

#include <algorithm>
#include <cmath>

namespace systole {
namespace {

constexpr Projection kProjections[] = {
    {"attn.q", "e", "hd", false}, {"attn.k", "e", "nd", false},  {"attn.v", "e", "nd", false},
    {"attn.o", "hd", "e", true},  {"mlp.gate", "e", "m", false}, {"mlp.up", "e", "m", false},
    {"mlp.down", "m", "e", true},
};

constexpr double kStddev = 0.02;

class Lister {
 public:
  explicit Lister(const DecoderConfig& config) : config_(config), frozen_(config.lora.rank > 0) {}

  void weight(const std::string& name, const std::string& dims, Init init) { add(name, dims, init, true); }
  void vector(const std::string& name, const std::string& dims, Init::Kind kind) {
    add(name, dims, Init{kind, 0}, false);
  }
  void adapter(const std::string& name, const std::string& dims, Init init) {
    add(name, dims, init, true);
    list.back().trainable = true;
  }
  std::int64_t size(char letter) const { return dim(letter).second; }

  std::vector<Parameter> list;

 private:
  std::pair<const char*, std::int64_t> dim(char letter) const {
    switch (letter) {
      case 'l': return {"layer", config_.layers};
      case 'e': return {"embed", config_.width};
      case 'h': return {"heads", config_.heads};
      case 'n': return {"kv_heads", config_.kv_heads};
      case 'd': return {"head", config_.head};
      case 'm': return {"mlp", config_.mlp};
      case 'v': return {"vocab", config_.vocabulary};
      case 'p': return {"position", config_.context};
      case 'r': return {"lora", config_.lora.rank};
    }
    CHECK(false, "no dim '{}'", letter);
  }

  void add(const std::string& name, const std::string& dims, Init init, bool decay) {
    Shape shape;
    std::vector<std::string> names;
    for (const char letter : dims) {
      names.emplace_back(dim(letter).first);
      shape.push_back(dim(letter).second);
    }
    list.push_back({name, Type(DType::f32, std::move(shape), std::move(names)), init, !frozen_, decay, 0});
  }

  const DecoderConfig& config_;
  bool frozen_;
};

void list_projection(Lister& lister, const Projection& p, const DecoderConfig& config) {
  const std::string name = std::string("blocks.{layer}.") + p.name, in = p.in, out = p.out;
  const double shrink = p.residual ? 1 / std::sqrt(2.0 * static_cast<double>(config.layers)) : 1;
  lister.weight(name, "l" + in + out, {Init::Kind::normal, kStddev * shrink});
  if (config.bias) lister.vector(name + "_bias", "l" + out, Init::Kind::zeros);
  if (!has_adapter(config, p)) return;
  double inputs = 1;
  for (const char letter : in) inputs *= static_cast<double>(lister.size(letter));
  lister.adapter(name + ".lora_a", "l" + in + "r", {Init::Kind::uniform, 1 / std::sqrt(inputs)});
  lister.adapter(name + ".lora_b", "lr" + out, {Init::Kind::zeros, 0});
}

// The projections of a part of a block, "attn." or "mlp.".
void list_part(Lister& lister, std::string_view part, const DecoderConfig& config) {
  for (const Projection& p : decoder_projections()) {
    if (std::string_view(p.name).starts_with(part) && has_projection(config, p)) list_projection(lister, p, config);
  }
}

void list_norm(Lister& lister, const std::string& name, const std::string& dims, const DecoderConfig& config) {
  lister.vector(name + ".scale", dims, Init::Kind::ones);
  if (has_norm_bias(config)) lister.vector(name + ".bias", dims, Init::Kind::zeros);
}

}  // namespace

std::span<const Projection> decoder_projections() { return kProjections; }

bool has_projection(const DecoderConfig& config, const Projection& projection) {
  return config.gated || projection.name != std::string_view("mlp.gate");
}

bool has_adapter(const DecoderConfig& config, const Projection& projection) {
  const std::vector<std::string>& targets = config.lora.targets;
  if (config.lora.rank == 0 || !has_projection(config, projection)) return false;
  return targets.empty() || std::find(targets.begin(), targets.end(), projection.name) != targets.end();
}

bool has_norm_bias(const DecoderConfig& config) { return config.bias && config.norm == ModelSpec::Norm::layer; }

std::vector<Parameter> decoder_parameters(const DecoderConfig& config) {
  Lister lister(config);
  lister.weight("embed.tokens", "ve", {Init::Kind::normal, kStddev});
  if (config.position == ModelSpec::Position::learned)
    lister.weight("embed.positions", "pe", {Init::Kind::normal, kStddev});
  list_norm(lister, "blocks.{layer}.norm1", "le", config);
  list_part(lister, "attn.", config);
  if (!config.parallel) list_norm(lister, "blocks.{layer}.norm2", "le", config);
  list_part(lister, "mlp.", config);
  list_norm(lister, "norm", "e", config);
  if (!config.tied) lister.weight("head", "ve", {Init::Kind::normal, kStddev});
  return std::move(lister.list);
}

}  // namespace systole
