#include "describe/partition/serving_layouts.h"

#include <algorithm>

#include "describe/ir/layer_names.h"

namespace systole {
namespace {

bool is_cut(const std::string& name) {
  return name == "heads" || name == "kv_heads" || name == "mlp" || name == "vocab";
}

int dim_named(const Type& type, const std::string& name) {
  for (int dim = 0; dim < type.ndim(); ++dim) {
    if (type.name(dim) == name) return dim;
  }
  return -1;
}

// The dim of the parameter that is cut; -1: none. A weight's last dims are those of its results, but the tables of
// tokens have them first.
int cut_dim(const Parameter& parameter) {
  const Type& type = parameter.type;
  if (const int vocab = dim_named(type, "vocab"); vocab >= 0) return vocab;
  const bool is_weight = type.ndim() - (layer_name(parameter.name) ? 1 : 0) > 1;
  int last = -1;
  for (int dim = 0; dim < type.ndim(); ++dim) {
    const bool embeds = type.name(dim) == "embed" && is_weight && last >= 0;
    if (is_cut(type.name(dim)) || embeds) last = dim;
  }
  return last;
}

}  // namespace

Mesh serving_mesh(std::int64_t parts) { return parts > 1 ? Mesh::make({{kServingAxis, parts}}).value() : Mesh{}; }

std::vector<AxisRule> serving_rules() { return {{kServingAxis, {"heads", "kv_heads", "mlp", "vocab"}}}; }

Layout serving_layout(const Parameter& parameter, const Mesh& mesh) {
  const int dim = cut_dim(parameter);
  Layout layout = Layout::whole(mesh);
  if (dim >= 0 && parameter.type.size(dim) % mesh.num_devices() == 0) layout.at[0] = dim;
  return layout;
}

Layout cache_layout(const Type& cache, const Mesh& mesh) {
  const int dim = dim_named(cache, "kv_heads");
  if (dim < 0) {
    fail(error(ErrorKind::unsupported, "a cache {} without heads is not cut over devices", to_string(cache))
             .hinted("leave out --ranks, or mesh"));
  }
  if (cache.size(dim) % mesh.num_devices() != 0) {
    fail(error(ErrorKind::invalid, "{} heads of keys and values do not divide over {} devices", cache.size(dim),
               mesh.num_devices())
             .hinted(fmt::format("as many devices as divide {}", cache.size(dim))));
  }
  Layout layout = Layout::whole(mesh);
  layout.at[0] = dim;
  return layout;
}

// A projection's results are whole only where their number does not divide: heads of keys and values do (cache_layout).
Layout adapter_layout(const std::string& name, const Type& tensor, const Mesh& mesh) {
  constexpr int kOutputs = 3;
  Layout layout = Layout::whole(mesh);
  if (name.ends_with(".b") && tensor.size(kOutputs) % mesh.num_devices() == 0) layout.at[0] = kOutputs;
  return layout;
}

}  // namespace systole
