// model.preset of bert and t5. Sizes: Devlin et al., arXiv:1810.04805, section 3; Raffel et al., arXiv:1910.10683,
// section 3.7, and v1.1 from google-research/text-to-text-transfer-transformer, released_checkpoints.md.
#include "describe/spec/schema.h"

namespace systole {
namespace {

using Text = const char*;

Preset bert(Text name, Text layers, Text width, Text heads, Text mlp) {
  return {name,
          {{"model.family", "bert"},
           {"model.layers", layers},
           {"model.width", width},
           {"model.heads", heads},
           {"model.context", "512"},
           {"model.vocabulary", "30522"},
           {"model.mlp", mlp},
           {"model.activation", "gelu"}}};
}

Preset t5(Text name, Text layers, Text width, Text heads, Text head, Text mlp, bool second) {
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

}  // namespace

std::vector<Preset> encoder_presets() {
  return {bert("bert-base", "12", "768", "12", "3072"),
          bert("bert-large", "24", "1024", "16", "4096"),
          t5("t5-small", "6", "512", "8", "64", "2048", false),
          t5("t5-base", "12", "768", "12", "64", "3072", false),
          t5("t5-large", "24", "1024", "16", "64", "4096", false),
          t5("t5-3b", "24", "1024", "32", "128", "16384", false),
          t5("t5-11b", "24", "1024", "128", "128", "65536", false),
          t5("t5-v1.1-small", "8", "512", "6", "64", "1024", true),
          t5("t5-v1.1-base", "12", "768", "12", "64", "2048", true),
          t5("t5-v1.1-large", "24", "1024", "16", "64", "2816", true),
          t5("t5-v1.1-3b", "24", "2048", "32", "64", "5120", true),
          t5("t5-v1.1-11b", "24", "4096", "64", "64", "10240", true)};
}

}  // namespace systole
