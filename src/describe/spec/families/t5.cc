// t5: its defaults, presets, and rules over several keys. Its keys are in schema_model_t5.cc. Sizes: Raffel et al.,
// arXiv:1910.10683, section 3.7, and v1.1 from google-research/text-to-text-transfer-transformer,
// released_checkpoints.md.
#include "describe/spec/families/families.h"
#include "describe/spec/families/t5_rules.h"

namespace systole {

void check_relative(const T5Spec& m, std::vector<BrokenRule>& broken) {
  if (m.relative_buckets % 4 != 0) {
    broken.push_back({{"model.relative.buckets"},
                      ErrorKind::invalid,
                      fmt::format("{} is no multiple of 4", m.relative_buckets),
                      "32, as published"});
  }
  if (m.relative_furthest <= m.relative_buckets / 2) {
    broken.push_back(
        {{"model.relative.furthest", "model.relative.buckets"},
         ErrorKind::invalid,
         fmt::format("{} buckets tell distances up to {} apart one by one", m.relative_buckets, m.relative_buckets / 2),
         fmt::format("furthest: {} or more", m.relative_buckets)});
  }
}

namespace {

using Text = const char*;

Preset preset(Text name, Text layers, Text width, Text heads, Text head, Text mlp, bool second) {
  return {name,
          {{"model.family", "t5"},
           {"model.layers", layers},
           {"model.width", width},
           {"model.heads", heads},
           {"model.head", head},
           {"model.mlp", mlp},
           {"model.context", "512"},
           {"model.target_context", "512"},
           {"model.vocabulary", "32128"},
           {"model.gated", second ? "true" : "false"},
           {"model.activation", second ? "gelu_tanh" : "relu"},
           {"model.tied", second ? "false" : "true"}}};
}

void t5_rules(const ModelSpec& model, std::vector<BrokenRule>& broken) {
  const auto& m = model.as<T5Spec>();
  check_heads(m.head, m.heads, m.width, broken);
  check_mlp(m.width, m.mlp, m.mlp_ratio, broken);
  check_countable(m.layers, m.width, m.heads * m.head, static_cast<double>(m.mlp), m.vocabulary + m.context, broken);
  check_relative(m, broken);
}

}  // namespace

std::vector<ModelFamily> T5Spec::families() {
  return {{.made = T5Spec{},
           .defaults = {{"model.activation", "relu"},
                        {"model.eps", "1e-6"},
                        {"data.train.field", "input"},
                        {"data.packing", "false"}},
           .presets = {preset("t5-small", "6", "512", "8", "64", "2048", false),
                       preset("t5-base", "12", "768", "12", "64", "3072", false),
                       preset("t5-large", "24", "1024", "16", "64", "4096", false),
                       preset("t5-3b", "24", "1024", "32", "128", "16384", false),
                       preset("t5-11b", "24", "1024", "128", "128", "65536", false),
                       preset("t5-v1.1-small", "8", "512", "6", "64", "1024", true),
                       preset("t5-v1.1-base", "12", "768", "12", "64", "2048", true),
                       preset("t5-v1.1-large", "24", "1024", "16", "64", "2816", true),
                       preset("t5-v1.1-3b", "24", "2048", "32", "64", "5120", true),
                       preset("t5-v1.1-11b", "24", "4096", "64", "64", "10240", true)},
           .add_keys = &T5Spec::add_keys,
           .rules = &t5_rules}};
}

}  // namespace systole
