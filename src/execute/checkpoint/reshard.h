#pragma once
// Rewriting a checkpoint for another cut, so that each rank of a mesh finds what it will restore together, in few large
// reads. The values, the step and all that is said of the checkpoint stay; state_hash (compare.h) is the same before
// and after. Atomic: until the new manifest takes the place of the old one, the old one stands.

#include <cstdint>
#include <functional>

#include "execute/checkpoint/ownership.h"
#include "execute/checkpoint/restore.h"

namespace systole::checkpoint {

struct ReshardReport {
  std::int64_t chunks_before = 0, chunks_after = 0;
  std::int64_t reads_before = 0, reads_after = 0;  // pieces that the ranks of the mesh read, all together
  Bytes written;
};

using ShardingOf = std::function<Result<Sharding>(const TensorEntry&)>;

// Takes as much memory as the largest rank holds. `options`: chunk_bytes, compress and threads are used; the folder's
// keys are those that it is read and written with. REQUIRES: nobody else writes into the folder.
// Errors: those of `sharding_of` and of assign_owners; corrupt, io, no_space: then all is as it was.
Result<ReshardReport> reshard(const Checkpoint& from, const Mesh& mesh, const ShardingOf& sharding_of,
                              const SaveOptions& options);

}  // namespace systole::checkpoint
