// bert: its defaults, presets, and rules over several keys. Sizes: Devlin et al., arXiv:1810.04805, section 3.
#include "describe/spec/families/families.h"

namespace systole {
namespace {

using Text = const char*;

Preset preset(Text name, Text layers, Text width, Text heads, Text mlp) {
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

void bert_rules(const ModelSpec& model, std::vector<BrokenRule>& broken) {
  const auto& m = model.as<BertSpec>();
  check_heads(0, m.heads, m.width, broken);
  check_mlp(m.width, m.mlp, m.mlp_ratio, broken);
  check_countable(m.layers, m.width, 0, static_cast<double>(m.mlp), m.vocabulary + m.context, broken);
}

}  // namespace

std::vector<ModelFamily> BertSpec::families() {
  return {
      {.made = BertSpec{},
       .defaults = {{"model.activation", "gelu"}, {"model.eps", "1e-12"}},
       .presets = {preset("bert-base", "12", "768", "12", "3072"), preset("bert-large", "24", "1024", "16", "4096")},
       .rules = &bert_rules}};
}

}  // namespace systole
