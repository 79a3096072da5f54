#include "describe/spec/families/families.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "describe/spec/rules_layout.h"

namespace systole {

const char* ModelFamily::name() const {
  return std::visit([](const auto& spec) { return spec.name(); }, made);
}

namespace {

template <typename... Specs>
std::vector<ModelFamily> families_of(const std::variant<Specs...>&) {
  std::vector<ModelFamily> all;
  const auto add = [&](std::vector<ModelFamily> more) { std::ranges::move(more, std::back_inserter(all)); };
  (add(Specs::families()), ...);
  return all;
}

}  // namespace

const std::vector<ModelFamily>& model_families() {
  static const std::vector<ModelFamily> all = families_of(FamilySpec());
  return all;
}

const ModelFamily& family_of(const ModelSpec& model) {
  const std::string_view name = model.family_name();
  return *std::ranges::find_if(model_families(), [&](const ModelFamily& each) { return each.name() == name; });
}

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const ModelFamily& family : model_families()) {
    for (const Preset& preset : family.presets) names.push_back(preset.name);
  }
  return names;
}

const std::vector<PresetValue>* preset_values(std::string_view preset) {
  for (const ModelFamily& family : model_families()) {
    for (const Preset& p : family.presets) {
      if (p.name == preset) return &p.values;
    }
  }
  return nullptr;
}

Condition families_trained_on(Task task) {
  Condition of{"model.family", {}};
  for (const ModelFamily& family : model_families()) {
    const Task its = std::visit([](const auto& spec) { return spec.task(); }, family.made);
    if (its == task) of.values.emplace_back(family.name());
  }
  return of;
}

void check_heads(std::int64_t head, std::int64_t heads, std::int64_t width, std::vector<BrokenRule>& broken) {
  if (head != 0 || divides(heads, width)) return;
  broken.push_back({{"model.heads", "model.width"},
                    ErrorKind::invalid,
                    fmt::format("{} heads do not divide width {}", heads, width),
                    "heads may be " + divisors_of(width) + ", or say model.head"});
}

void check_mlp(std::int64_t width, std::int64_t mlp, double mlp_ratio, std::vector<BrokenRule>& broken) {
  if (mlp_ratio == 0) return;
  const double hidden = static_cast<double>(width) * mlp_ratio;
  if (hidden != std::floor(hidden)) {
    broken.push_back(
        {{"model.mlp_ratio", "model.width"},
         ErrorKind::invalid,
         fmt::format("width {} × mlp_ratio {} is {}, no whole number", width, mlp_ratio, hidden),
         fmt::format("mlp_ratio: {}, or model.mlp in its place", std::round(hidden) / static_cast<double>(width))});
  } else if (static_cast<double>(mlp) != hidden) {
    broken.push_back({{"model.mlp_ratio", "model.mlp"},
                      ErrorKind::invalid,
                      fmt::format("model.mlp is {}, and width × mlp_ratio is {}", mlp, hidden),
                      "take one of them out"});
  }
}

void check_countable(std::int64_t layers, std::int64_t width, std::int64_t attended, double fed, std::int64_t tables,
                     std::vector<BrokenRule>& broken) {
  const auto e = static_cast<double>(width);
  const double parameters =
      static_cast<double>(layers) * e * (4 * static_cast<double>(attended) + 3 * fed) + static_cast<double>(tables) * e;
  if (parameters <= 1e17) return;
  broken.push_back({{"model.width"},
                    ErrorKind::invalid,
                    fmt::format("a model of {:.1e} parameters cannot be counted", parameters),
                    "fewer layers, or less width"});
}

}  // namespace systole
