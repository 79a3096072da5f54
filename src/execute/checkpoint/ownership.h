#pragma once
// Who saves what: every element of every tensor is owned by exactly one rank, whatever the mesh and the shardings. All
// of it is pure, so that each rank finds the same answer alone.
//
// A dim of size n that its axes cut into p parts has parts of ceil(n/p): the last ones may be short or empty. What a
// device holds beyond the tensor is padding, and no box of a checkpoint covers it.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "execute/checkpoint/save.h"
#include "ground/mesh/mesh.h"
#include "ground/mesh/sharding.h"

namespace systole::checkpoint {

// The part of the tensor that a device holds, without padding; it may be empty. Errors: not_found (an axis that the
// mesh lacks), invalid (another number of dims, an axis used twice). REQUIRES: 0 <= device < mesh.num_devices().
Result<Box> box_on(const Shape& shape, const Sharding& sharding, const Mesh& mesh, std::int64_t device);

// What the device's buffer covers: the same with padding, so that all devices' have one shape. Errors: as box_on.
Result<Box> padded_box_on(const Shape& shape, const Sharding& sharding, const Mesh& mesh, std::int64_t device);

// A tensor of the logical model and how it lies on the mesh.
struct LaidTensor {
  std::string name;
  Role role = Role::parameter;
  DType dtype = DType::f32;
  Shape shape;
  Sharding sharding;
  int group = 0;  // as TensorPart::group
};

struct OwnedBox {
  std::size_t tensor = 0;  // index of the LaidTensor
  Box box;
  bool operator==(const OwnedBox&) const = default;
};

// One list for each device, in order of tensors. A box that several devices hold goes to one of them: the largest
// first, to whoever has the fewest bytes by then (the lowest rank of equals). Where all hold all, no rank gets more
// than the mean and one tensor. Errors: as box_on, with the tensor's name.
Result<std::vector<std::vector<OwnedBox>>> assign_owners(std::span<const LaidTensor> tensors, const Mesh& mesh);

// What a rank hands to save: every tensor is named, those of which it owns nothing with an empty box, so that what
// nobody owns is missed. Where it owns something `held` is its buffer's box; `bytes` are the caller's to set.
// REQUIRES: `owned` is the rank's list of assign_owners for the same tensors and mesh.
std::vector<TensorPart> parts_to_save(std::span<const LaidTensor> tensors, const Mesh& mesh, std::int64_t rank,
                                      std::span<const OwnedBox> owned);

}  // namespace systole::checkpoint
