#include "describe/ops/testing/cut.h"

#include "describe/ops/index.h"

namespace systole {
namespace {

// Visits every element of the device's shard, as (index in the whole, index in the shard).
template <typename Visit>
void for_each_pair(const Shape& whole, const Layout& layout, const Mesh& mesh, std::int64_t device, Visit visit) {
  const Shard box = box_of(whole, layout, mesh, mesh.coordinates(device));
  const Shape part = local_type(Type(DType::f64, whole), layout, mesh).shape;
  const std::vector<std::int64_t> in_whole = strides_of(whole), in_part = strides_of(part);
  ops::for_each_index(box.size, [&](const Shape& index) {
    std::int64_t a = 0, b = 0;
    for (std::size_t d = 0; d < index.size(); ++d) {
      a += (box.offset[d] + index[d]) * in_whole[d];
      b += index[d] * in_part[d];
    }
    visit(a, b);
  });
}

bool holds_terms(const Layout& layout, const Mesh& mesh, std::int64_t device) {
  const Coordinates place = mesh.coordinates(device);
  for (std::size_t a = 0; a < place.size(); ++a) {
    if (layout.at[a] == Layout::kPartial && place[a] != 0) return false;
  }
  return true;
}

}  // namespace

FakeMesh fake(const Mesh& mesh) {
  FakeMesh result;
  for (const Axis& axis : mesh.axes()) {
    result.axes.push_back(axis.name);
    result.sizes.push_back(axis.size);
  }
  return result;
}

HostTensor cut(const HostTensor& whole, const Layout& layout, const Mesh& mesh, std::int64_t device) {
  HostTensor part(whole.dtype(), local_type(Type(whole.dtype(), whole.shape()), layout, mesh).shape);
  if (!holds_terms(layout, mesh, device)) return part;
  for_each_pair(whole.shape(), layout, mesh, device, [&](std::int64_t a, std::int64_t b) { part.set(b, whole.at(a)); });
  return part;
}

HostTensor uncut(std::span<const HostTensor> parts, const Shape& shape, const Layout& layout, const Mesh& mesh) {
  HostTensor whole(parts[0].dtype(), shape);
  std::vector<bool> seen(static_cast<std::size_t>(whole.size()));
  const auto device_terms = [&](std::int64_t device) {  // its index on the axes with partial sums
    std::int64_t place = 0;
    const Coordinates at = mesh.coordinates(device);
    for (std::size_t a = 0; a < at.size(); ++a) {
      if (layout.at[a] == Layout::kPartial) place = place * mesh.axes()[a].size + at[a];
    }
    return place;
  };
  std::int64_t terms = 1;
  for (std::size_t a = 0; a < layout.at.size(); ++a) {
    if (layout.at[a] == Layout::kPartial) terms *= mesh.axes()[a].size;
  }
  for (std::int64_t term = 0; term < terms; ++term) {
    HostTensor sum(whole.dtype(), shape);
    std::fill(seen.begin(), seen.end(), false);
    for (std::int64_t device = 0; device < mesh.num_devices(); ++device) {
      if (device_terms(device) != term) continue;
      const HostTensor& part = parts[static_cast<std::size_t>(device)];
      for_each_pair(shape, layout, mesh, device, [&](std::int64_t a, std::int64_t b) {
        const auto at = static_cast<std::size_t>(a);
        if (seen[at] && sum.at(a) != part.at(b))
          fail(error(ErrorKind::internal, "device {} has {} where another has {}", device, part.at(b), sum.at(a)));
        seen[at] = true;
        sum.set(a, part.at(b));
      });
    }
    for (std::int64_t i = 0; i < whole.size(); ++i) whole.set(i, whole.at(i) + sum.at(i));
  }
  return whole;
}

}  // namespace systole
