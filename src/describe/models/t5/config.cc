// Initial values as published (google-research/text-to-text-transfer-transformer, through mesh-tensorflow): normal,
// with deviations that preserve variances although scores are not scaled. An untied head begins at width^-0.5, so that
// the first loss is near ln(vocabulary).

#include "describe/models/t5/config.h"

#include <cmath>

#include "describe/models/parameter_list.h"
#include "describe/models/sizes.h"
#include "describe/spec/families/t5_rules.h"

namespace systole {
namespace {

double root(std::int64_t n) { return 1 / std::sqrt(static_cast<double>(n)); }

void list_attention(ParameterList& list, const std::string& name, const T5Spec& c) {
  list.projection(name + ".q", "e", "hd", root(c.width * c.head), false);
  list.projection(name + ".k", "e", "hd", root(c.width), false);
  list.projection(name + ".v", "e", "hd", root(c.width), false);
  list.projection(name + ".o", "hd", "e", root(c.heads * c.head), false);
}

void list_stack(ParameterList& list, const std::string& stack, const T5Spec& c) {
  const bool decoder = stack == "decoder";
  const std::string block = stack + ".blocks.{layer}.";
  list.weight(stack + ".relative_bias", "bh", root(c.width));
  list.scale(block + "norm1.scale", "le");
  list_attention(list, block + "attn", c);
  list.scale(block + "norm2.scale", "le");
  if (decoder) {
    list_attention(list, block + "cross", c);
    list.scale(block + "norm3.scale", "le");
  }
  if (c.gated) list.projection(block + "mlp.gate", "e", "m", root(c.width), false);
  list.projection(block + "mlp.up", "e", "m", root(c.width), false);
  list.projection(block + "mlp.down", "m", "e", root(c.mlp), false);
  list.scale(stack + ".norm.scale", "e");
}

}  // namespace

T5Spec checked(T5Spec config) {
  if (config.decoder_layers == 0) config.decoder_layers = config.layers;
  if (config.mlp == 0) config.mlp = 4 * config.width;
  if (config.target_context == 0) config.target_context = config.context;
  require_positive("layers", config.layers);
  require_positive("decoder_layers", config.decoder_layers);
  require_positive("width", config.width);
  require_positive("heads", config.heads);
  if (config.head == 0) {
    require_divides("heads", config.heads, "width", config.width);
    config.head = config.width / config.heads;
  }
  require_positive("head", config.head);
  require_positive("mlp", config.mlp);
  require_positive("vocabulary", config.vocabulary);
  require_positive("context", config.context);
  require_positive("target_context", config.target_context);
  require_share("dropout", config.dropout);
  require_positive("relative.buckets", config.relative_buckets);
  std::vector<BrokenRule> broken;
  check_relative(config, broken);
  refuse(broken);
  return config;
}

std::vector<Parameter> t5_parameters(const T5Spec& c) {
  ParameterList::Dims dims{{'v', {"vocab", c.vocabulary}}, {'b', {"bucket", c.relative_buckets}},
                           {'l', {"layer", c.layers}},     {'e', {"embed", c.width}},
                           {'h', {"heads", c.heads}},      {'d', {"head", c.head}},
                           {'m', {"mlp", c.mlp}}};
  ParameterList encoder(dims);
  encoder.weight("embed.tokens", "ve", 1);
  list_stack(encoder, "encoder", c);
  dims['l'].second = c.decoder_layers;
  ParameterList decoder(std::move(dims));
  list_stack(decoder, "decoder", c);
  if (!c.tied) decoder.weight("head", "ve", root(c.width));
  std::vector<Parameter> all = encoder.take();
  for (Parameter& p : decoder.take()) all.push_back(std::move(p));
  return all;
}

}  // namespace systole
