#include "execute/checkpoint/ownership.h"

#include <algorithm>
#include <map>
#include <set>

namespace systole::checkpoint {

namespace {

Status check_axes(const Shape& shape, const Sharding& sharding, const Mesh& mesh) {
  if (sharding.dims.size() != shape.size()) {
    return error(ErrorKind::invalid, "sharding {} is of {} dims, the tensor {} of {}", to_string(sharding),
                 sharding.dims.size(), systole::to_string(shape), shape.size());
  }
  std::set<std::string> used;
  for (const auto& axes : sharding.dims) {
    for (const std::string& axis : axes) {
      TRY(mesh.find(axis));
      if (used.insert(axis).second) continue;
      return error(ErrorKind::invalid, "sharding {} uses axis '{}' twice", to_string(sharding), axis);
    }
  }
  return {};
}

struct Cut {
  std::int64_t part = 0, parts = 1;  // this device's shard number, and the number of shards
};

Cut cut_of(const std::vector<std::string>& axes, const Mesh& mesh, const Coordinates& at) {
  Cut cut;
  for (const std::string& name : axes) {
    const std::size_t axis = mesh.find(name).value();
    cut.part = cut.part * mesh.axes()[axis].size + at[axis];
    cut.parts *= mesh.axes()[axis].size;
  }
  return cut;
}

Bytes bytes_of(const LaidTensor& tensor, const Box& box) { return Bytes(box.num_elements() * size_of(tensor.dtype)); }

// A box and the devices that hold it.
struct Candidate {
  std::size_t tensor = 0;
  Box box;
  Bytes bytes;
  std::vector<std::size_t> devices;
};

Status add_candidates(const LaidTensor& tensor, std::size_t index, const Mesh& mesh, std::vector<Candidate>& all) {
  std::map<std::vector<std::int64_t>, std::size_t> seen;  // start → index in `all`
  for (std::int64_t device = 0; device < mesh.num_devices(); ++device) {
    auto box = box_on(tensor.shape, tensor.sharding, mesh, device);
    if (!box) {
      Error wrong = std::move(box).error();
      wrong.message = fmt::format("tensor '{}': {}", tensor.name, wrong.message);
      return wrong;
    }
    if (box->empty()) continue;
    const auto [slot, fresh] = seen.emplace(box->start, all.size());
    if (fresh) all.push_back({index, *box, bytes_of(tensor, *box), {}});
    all[slot->second].devices.push_back(static_cast<std::size_t>(device));
  }
  return {};
}

}  // namespace

Result<Box> padded_box_on(const Shape& shape, const Sharding& sharding, const Mesh& mesh, std::int64_t device) {
  TRY(check_axes(shape, sharding, mesh));
  const Coordinates at = mesh.coordinates(device);
  Box box = Box::whole(shape);
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const Cut cut = cut_of(sharding.dims[d], mesh, at);
    const std::int64_t size = (shape[d] + cut.parts - 1) / cut.parts;
    box.start[d] = cut.part * size;
    box.end[d] = box.start[d] + size;
  }
  return box;
}

Result<Box> box_on(const Shape& shape, const Sharding& sharding, const Mesh& mesh, std::int64_t device) {
  Box box = TRY(padded_box_on(shape, sharding, mesh, device));
  for (std::size_t d = 0; d < shape.size(); ++d) {
    box.start[d] = std::min(box.start[d], shape[d]);
    box.end[d] = std::min(box.end[d], shape[d]);
  }
  return box;
}

Result<std::vector<std::vector<OwnedBox>>> assign_owners(std::span<const LaidTensor> tensors, const Mesh& mesh) {
  std::vector<Candidate> all;
  for (std::size_t t = 0; t < tensors.size(); ++t) TRY(add_candidates(tensors[t], t, mesh, all));
  // Boxes with one holder come first; then the largest. Equal ones stay in order of tensors and boxes.
  std::stable_sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) {
    const bool a_free = a.devices.size() > 1, b_free = b.devices.size() > 1;
    return a_free != b_free ? b_free : a.bytes > b.bytes;
  });
  std::vector<Bytes> held(static_cast<std::size_t>(mesh.num_devices()));
  std::vector<std::vector<OwnedBox>> owned(held.size());
  for (Candidate& one : all) {
    const std::size_t owner = *std::min_element(one.devices.begin(), one.devices.end(),
                                                [&](std::size_t a, std::size_t b) { return held[a] < held[b]; });
    held[owner] += one.bytes;
    owned[owner].push_back({one.tensor, std::move(one.box)});
  }
  for (auto& list : owned) {
    std::stable_sort(list.begin(), list.end(),
                     [](const OwnedBox& a, const OwnedBox& b) { return a.tensor < b.tensor; });
  }
  return owned;
}

std::vector<TensorPart> parts_to_save(std::span<const LaidTensor> tensors, const Mesh& mesh, std::int64_t rank,
                                      std::span<const OwnedBox> owned) {
  std::vector<TensorPart> parts;
  auto next = owned.begin();
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    const LaidTensor& tensor = tensors[t];
    const std::vector<std::int64_t> origin(tensor.shape.size(), 0);
    // A scalar's box of no dims is never empty, so ranks that do not own it omit it.
    const bool owns = next != owned.end() && next->tensor == t;
    if (!owns && tensor.shape.empty()) continue;
    TensorPart part{tensor.name, tensor.role, tensor.dtype, tensor.shape, Box{origin, origin}, {}, tensor.group};
    if (owns) {
      part.box = (next++)->box;
      part.held = padded_box_on(tensor.shape, tensor.sharding, mesh, rank).value();
      if (*part.held == part.box) part.held.reset();
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace systole::checkpoint
