// model.preset: published models as defaults. Sizes: Radford et al., "Language Models are Unsupervised Multitask
// Learners", 2019, table 2, and the hyperparameters that were released with the weights (openai/gpt-2, hparams.json).
#include "describe/spec/schema.h"

namespace systole {
namespace {

Preset gpt2(const char* name, const char* layers, const char* width, const char* heads) {
  return {name,
          {{"model.family", "gpt"},
           {"model.layers", layers},
           {"model.width", width},
           {"model.heads", heads},
           {"model.context", "1024"},
           {"model.vocabulary", "50257"},
           {"model.mlp_ratio", "4"},
           {"model.norm", "layer"},
           {"model.position", "learned"},
           {"model.activation", "gelu_tanh"},
           {"model.bias", "true"},
           {"model.tied", "true"}}};
}

const std::vector<Preset>& presets() {
  static const std::vector<Preset> all = [] {
    std::vector<Preset> presets{gpt2("gpt2-124m", "12", "768", "12"), gpt2("gpt2-355m", "24", "1024", "16"),
                                gpt2("gpt2-774m", "36", "1280", "20"), gpt2("gpt2-1558m", "48", "1600", "25")};
    for (Preset& preset : encoder_presets()) presets.push_back(std::move(preset));
    return presets;
  }();
  return all;
}

}  // namespace

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const Preset& preset : presets()) names.push_back(preset.name);
  return names;
}

const std::vector<PresetValue>* preset_values(std::string_view preset) {
  for (const Preset& p : presets()) {
    if (p.name == preset) return &p.values;
  }
  return nullptr;
}

}  // namespace systole
