#pragma once
// Assigns owners: each element of each tensor is saved by exactly one rank, for any mesh and shardings. All functions
// are pure, so every rank computes the same answer without communication.
//
// A dim of size n that is sharded p ways has shards of ceil(n/p): the last ones may be short or empty. What a device
// holds beyond the tensor is padding, and no box of a checkpoint covers it.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "execute/checkpoint/save.h"
#include "ground/mesh/mesh.h"
#include "ground/mesh/sharding.h"

namespace systole::checkpoint {

// The shard of the tensor that a device holds, without padding; may be empty. Errors: not_found (an axis that the mesh
// lacks), invalid (another number of dims, an axis used twice). REQUIRES: 0 <= device < mesh.num_devices().
Result<Box> box_on(const Shape& shape, const Sharding& sharding, const Mesh& mesh, std::int64_t device);

// The box of the device's buffer: the shard with padding, so that all devices have the same shape. Errors: as box_on.
Result<Box> padded_box_on(const Shape& shape, const Sharding& sharding, const Mesh& mesh, std::int64_t device);

// A tensor of the logical model and its sharding on the mesh.
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

// One list per device, in order of tensors. A box that several devices hold is assigned to one of them: the largest box
// first, to the device with the fewest bytes so far (the lowest rank among equals). If all devices hold everything, no
// rank gets more than the mean plus one tensor. Errors: as box_on, with the tensor's name.
Result<std::vector<std::vector<OwnedBox>>> assign_owners(std::span<const LaidTensor> tensors, const Mesh& mesh);

// The tensors that a rank passes to save. Every tensor is named, with an empty box if the rank owns nothing of it, so
// that an element without an owner is detected. If it owns something, `held` is its buffer's box; the caller sets
// `bytes`. REQUIRES: `owned` is the rank's list of assign_owners for the same tensors and mesh.
std::vector<TensorPart> parts_to_save(std::span<const LaidTensor> tensors, const Mesh& mesh, std::int64_t rank,
                                      std::span<const OwnedBox> owned);

}  // namespace systole::checkpoint
