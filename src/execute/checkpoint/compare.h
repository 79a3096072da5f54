#pragma once
// Comparison of two checkpoints, and one hash over the contents of a checkpoint. Both read tensors in slabs of a few
// MiB, so the model need not fit in memory, and both are independent of how the tensors were cut, packed or sharded.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "execute/checkpoint/restore.h"

namespace systole::checkpoint {

struct TensorDiff {
  enum class Kind { equal, values, other_type, only_in_a, only_in_b };
  std::string name;
  Kind kind = Kind::equal;
  std::int64_t elements = 0;   // elements of the tensor
  std::int64_t differing = 0;  // elements whose bits differ (kind values)
  double max_abs = 0;          // largest |a - b| among them; infinite if exactly one of the two is not finite
  std::int64_t first = -1;     // row-major index of the first differing element
  std::string text;            // for people: "f32[3] and f32[4]", ""
};
const char* name_of(TensorDiff::Kind kind);

// One row per tensor of either checkpoint, sorted by name. Errors: corrupt, io.
Result<std::vector<TensorDiff>> diff(const Checkpoint& a, const Checkpoint& b);

// xxh128, as 32 hex digits, over the tensors in order of name: name, dtype, shape and elements of each. Equal values
// give equal hashes, whoever wrote them. Errors: corrupt, io.
Result<std::string> state_hash(const Checkpoint& checkpoint);

// Passes a tensor's bytes, row-major, to `take` in slabs of at most `limit` bytes (at least one element).
// Errors: as Checkpoint::read and `take`.
Status for_each_slab(const Checkpoint& checkpoint, const TensorEntry& tensor, Bytes limit,
                     const std::function<Status(std::span<const std::byte>)>& take);

}  // namespace systole::checkpoint
