#include "describe/program/layout.h"

#include <algorithm>

namespace systole {
namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

bool Layout::cut() const {
  return std::any_of(at.begin(), at.end(), [](int dim) { return dim >= 0; });
}
bool Layout::partial() const {
  return std::any_of(at.begin(), at.end(), [](int dim) { return dim == kPartial; });
}

Sharding sharding_of(const Layout& layout, int ndim, const Mesh& mesh) {
  Sharding sharding = Sharding::replicated(static_cast<std::size_t>(ndim));
  for (std::size_t a = 0; a < layout.at.size(); ++a) {
    if (layout.at[a] >= 0) sharding.dims[static_cast<std::size_t>(layout.at[a])].push_back(mesh.axes()[a].name);
  }
  return sharding;
}

std::string to_string(const Layout& layout, int ndim, const Mesh& mesh) {
  std::vector<std::string> sums;
  for (std::size_t a = 0; a < layout.at.size(); ++a) {
    if (layout.at[a] == Layout::kPartial) sums.push_back(mesh.axes()[a].name);
  }
  const std::string cuts = to_string(sharding_of(layout, ndim, mesh));
  return sums.empty() ? cuts : fmt::format("{}{}partial({})", cuts, cuts.empty() ? "" : " ", fmt::join(sums, ","));
}

std::int64_t parts_of(const Layout& layout, int dim, const Mesh& mesh) {
  std::int64_t parts = 1;
  for (std::size_t a = 0; a < layout.at.size(); ++a) {
    if (layout.at[a] == dim) parts *= mesh.axes()[a].size;
  }
  return parts;
}

bool divides(const Type& whole, const Layout& layout, const Mesh& mesh) {
  for (int dim = 0; dim < whole.ndim(); ++dim) {
    if (whole.size(dim) % parts_of(layout, dim, mesh) != 0) return false;
  }
  return true;
}

Type local_type(const Type& whole, const Layout& layout, const Mesh& mesh) {
  Type local = whole;
  for (int dim = 0; dim < whole.ndim(); ++dim)
    local.shape[static_cast<std::size_t>(dim)] = ceil_div(whole.size(dim), parts_of(layout, dim, mesh));
  return local;
}

Shard box_of(const Shape& whole, const Layout& layout, const Mesh& mesh, const Coordinates& device) {
  Shard box{Shape(whole.size(), 0), whole};
  for (std::size_t d = 0; d < whole.size(); ++d) {
    std::int64_t index = 0;
    for (std::size_t a = 0; a < layout.at.size(); ++a) {
      if (layout.at[a] == static_cast<int>(d)) index = index * mesh.axes()[a].size + device[a];
    }
    const std::int64_t part = ceil_div(whole[d], parts_of(layout, static_cast<int>(d), mesh));
    box.offset[d] = std::min(index * part, whole[d]);
    box.size[d] = std::min(part, whole[d] - box.offset[d]);
  }
  return box;
}

Layout slice_layout(const Layout& stacked) {
  Layout slice = stacked;
  for (int& dim : slice.at) {
    CHECK(dim != 0, "an axis cuts the outermost dim of what a repeat slices");
    if (dim > 0) --dim;
  }
  return slice;
}

Layout stacked_layout(const Layout& slice) {
  Layout stacked = slice;
  for (int& dim : stacked.at) {
    if (dim >= 0) ++dim;
  }
  return stacked;
}

}  // namespace systole
