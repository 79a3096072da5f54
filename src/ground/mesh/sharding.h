#pragma once
// The sharding of a tensor on a mesh: per dim the axes that shard it, outermost first; replicated on every other axis.
// As text: one pair of braces per dim, "{data}{}{tensor,seq}".

#include <string>
#include <string_view>
#include <vector>

#include "ground/base/result.h"
#include "ground/mesh/mesh.h"
#include "ground/tensor/shape.h"

namespace systole {

struct Sharding {
  std::vector<std::vector<std::string>> dims;

  static Sharding replicated(std::size_t ndim) { return {std::vector<std::vector<std::string>>(ndim)}; }
  // The inverse of to_string; "" is the sharding of a scalar. Errors: invalid.
  static Result<Sharding> parse(std::string_view text);
  bool operator==(const Sharding&) const = default;
};

std::string to_string(const Sharding& sharding);

// What the axis fsdp shards (ZeRO stage); each value includes those before it.
enum class ZeroStage { nothing, state, gradients, parameters };
const char* name_of(ZeroStage stage);  // "parameters"

// The shard of one device: `offset[d] <= index < offset[d] + size[d]`.
struct Shard {
  Shape offset, size;
  bool operator==(const Shard&) const = default;
};

// Errors: not_found (no such axis in the mesh); invalid (wrong number of dims, an axis used twice, a dim not divisible
// by its axes: the message names both numbers).
Status check_sharding(const Shape& shape, const Sharding& sharding, const Mesh& mesh);
// The shape of each device's shard. Errors: as check_sharding.
Result<Shape> local_shape(const Shape& shape, const Sharding& sharding, const Mesh& mesh);
// The shard of `device`. Errors: as check_sharding. REQUIRES: 0 <= device < mesh.num_devices().
Result<Shard> shard_of(const Shape& shape, const Sharding& sharding, const Mesh& mesh, std::int64_t device);

// Calls visit(whole index, part index, count) for each contiguous run of the shard `box`, row by row: `count` elements
// at an index into the whole tensor and an index into a buffer of shape `part`, whose dims may be longer than the
// box's.
template <typename Visit>
void for_each_run(const Shape& whole, const Shard& box, const Shape& part, Visit visit) {
  const std::size_t ndim = whole.size();
  if (num_elements(box.size) == 0) return;
  if (ndim == 0) return visit(std::int64_t{0}, std::int64_t{0}, std::int64_t{1});
  const std::vector<std::int64_t> in_whole = strides_of(whole), in_part = strides_of(part);
  Shape index(ndim, 0);  // of the row; the last dim stays 0
  for (;;) {
    std::int64_t from = 0, to = 0;
    for (std::size_t d = 0; d < ndim; ++d) {
      from += (box.offset[d] + index[d]) * in_whole[d];
      to += index[d] * in_part[d];
    }
    visit(from, to, box.size[ndim - 1]);
    std::size_t d = ndim - 1;
    while (d > 0 && ++index[d - 1] == box.size[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

}  // namespace systole
