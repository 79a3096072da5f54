#include "describe/partition/training_layouts.h"

#include <algorithm>

#include "describe/ir/layer_names.h"
#include "describe/partition/probe.h"
#include "ground/base/nearest.h"

namespace systole {

namespace {

int dim_named(const Type& type, const std::string& name) {
  for (int dim = 0; dim < type.ndim(); ++dim) {
    if (type.name(dim) == name) return dim;
  }
  return -1;
}

}  // namespace

Mesh without_single_axes(const Mesh& mesh) {
  std::vector<Axis> axes;
  for (const Axis& axis : mesh.axes()) {
    if (axis.size > 1) axes.push_back(axis);
  }
  return Mesh::make(std::move(axes)).value();
}

TrainingLayouts::TrainingLayouts(Mesh mesh, const ShardingStrategy& strategy)
    : mesh_(std::move(mesh)), strategy_(strategy) {}

bool TrainingLayouts::cuts_rows(std::size_t axis) const {
  for (const AxisRule& rule : strategy_.rules) {
    if (rule.axis == mesh_.axes()[axis].name)
      return std::find(rule.names.begin(), rule.names.end(), "batch") != rule.names.end();
  }
  return false;
}

bool TrainingLayouts::cuts_only_rows(std::size_t axis) const {
  for (const AxisRule& rule : strategy_.rules) {
    if (rule.axis == mesh_.axes()[axis].name) return rule.names == std::vector<std::string>{"batch"};
  }
  return false;
}

bool TrainingLayouts::stores(std::size_t axis) const {
  return strategy_.stored != Stored::nothing && mesh_.axes()[axis].name == strategy_.store_axis;
}

std::int64_t TrainingLayouts::row_parts() const {
  std::int64_t parts = 1;
  for (std::size_t a = 0; a < mesh_.axes().size(); ++a) parts *= cuts_rows(a) ? mesh_.axes()[a].size : 1;
  return parts;
}

Layout TrainingLayouts::rows(const Type& type) const {
  Layout layout = whole();
  for (std::size_t a = 0; type.ndim() > 0 && a < layout.at.size(); ++a) {
    if (cuts_rows(a)) layout.at[a] = 0;
    if (cuts_tokens(a)) layout.at[a] = std::max(dim_named(type, "seq"), Layout::kWhole);
  }
  return layout;
}

namespace {

// A stacked parameter matches by its name over all layers, whichever layers it has.
bool matches(const ParameterCut& rule, const Parameter& p) {
  std::optional<LayerName> layers = layer_name(p.name);
  if (!layers) return glob_matches(rule.names, p.name);
  layers->first = 0;
  layers->step = 1;
  return glob_matches(rule.names, layers->from(0)) || glob_matches(rule.names, layers->of(0));
}

std::int64_t sliced_dims(const Parameter& p) { return layer_name(p.name) ? 1 : 0; }

}  // namespace

const ParameterCut* TrainingLayouts::rule_of(const Parameter& p) const {
  for (const ParameterCut& rule : strategy_.parameters) {
    if (matches(rule, p)) return &rule;
  }
  return nullptr;
}

Status TrainingLayouts::check(std::span<const Parameter> parameters) const {
  std::vector<std::string> names;
  for (const Parameter& p : parameters) names.push_back(p.name);
  for (const ParameterCut& rule : strategy_.parameters) {
    if (std::none_of(parameters.begin(), parameters.end(), [&](const Parameter& p) { return matches(rule, p); })) {
      return error(ErrorKind::invalid, "sharding: no parameter is named '{}'", rule.names)
          .hinted(nearest_hint(rule.names, names));
    }
  }
  for (const Parameter& p : parameters) {
    const ParameterCut* rule = rule_of(p);
    if (rule == nullptr) continue;
    for (const ParameterCut& other : strategy_.parameters) {
      if (&other == rule || !matches(other, p)) continue;
      return error(ErrorKind::invalid, "sharding: '{}' and '{}' both match '{}'", rule->names, other.names, p.name)
          .hinted("each parameter is cut by one rule: make one of the names narrower");
    }
    for (const auto& [name, axes] : rule->dims) {
      const int dim = dim_named(p.type, name);
      if (dim < sliced_dims(p)) {
        return error(ErrorKind::invalid, "sharding: '{}' has no dim '{}' that can be cut: {}", p.name, name,
                     to_string(p.type));
      }
      std::int64_t parts = 1;
      for (std::size_t a = 0; a < mesh_.axes().size(); ++a) {
        if (!cuts_only_rows(a) && std::find(axes.begin(), axes.end(), mesh_.axes()[a].name) != axes.end())
          parts *= mesh_.axes()[a].size;
      }
      if (p.type.size(dim) % parts != 0) {
        return error(ErrorKind::invalid, "sharding: {} of '{}' is {} and does not divide over {} devices", name, p.name,
                     p.type.size(dim), parts);
      }
    }
  }
  return {};
}

Layout TrainingLayouts::read(const Parameter& p) const {
  if (const ParameterCut* rule = rule_of(p)) {
    Layout layout = whole();
    for (const auto& [name, axes] : rule->dims) {
      for (std::size_t a = 0; a < layout.at.size(); ++a) {
        if (!cuts_only_rows(a) && std::find(axes.begin(), axes.end(), mesh_.axes()[a].name) != axes.end())
          layout.at[a] = dim_named(p.type, name);
      }
    }
    return layout;
  }
  Layout layout = preferred_by_names(p.type, strategy_.rules, mesh_);
  for (int& dim : layout.at) dim = std::max(dim, Layout::kWhole);
  return layout;
}

Layout TrainingLayouts::in_parts(const Parameter& p) const {
  Layout layout = read(p);
  if (const ParameterCut* rule = rule_of(p)) {
    for (const auto& [name, axes] : rule->dims) {
      for (std::size_t a = 0; a < layout.at.size(); ++a) {
        if (cuts_only_rows(a) && std::find(axes.begin(), axes.end(), mesh_.axes()[a].name) != axes.end())
          layout.at[a] = dim_named(p.type, name);
      }
    }
    return layout;
  }
  const int first = static_cast<int>(sliced_dims(p));  // a repeat slices its layers
  for (std::size_t a = 0; a < layout.at.size(); ++a) {
    const Axis& axis = mesh_.axes()[a];
    if (axis.name != strategy_.store_axis) continue;
    // The largest dim that divides evenly; otherwise the outermost, so that the padding is at the end.
    int best = -1, outermost = -1;
    for (int dim = p.type.ndim(); dim-- > first;) {
      if (parts_of(layout, dim, mesh_) > 1) continue;
      outermost = dim;
      if (p.type.size(dim) % axis.size == 0 && (best < 0 || p.type.size(dim) >= p.type.size(best))) best = dim;
    }
    layout.at[a] = best >= 0 ? best : outermost;
  }
  return layout;
}

Layout TrainingLayouts::parameter(const Parameter& p) const {
  return strategy_.stored >= Stored::parameters ? in_parts(p) : read(p);
}
Layout TrainingLayouts::state(const Parameter& p) const {
  return strategy_.stored >= Stored::state ? in_parts(p) : read(p);
}
Layout TrainingLayouts::gradient(const Parameter& p) const {
  Layout layout = strategy_.stored >= Stored::gradients ? in_parts(p) : read(p);
  for (std::size_t a = 0; a < layout.at.size(); ++a) {
    if (layout.at[a] == Layout::kWhole && (cuts_rows(a) || cuts_tokens(a))) layout.at[a] = Layout::kPartial;
  }
  return layout;
}

}  // namespace systole
