#pragma once
// Rewrites a checkpoint for another sharding, so that each rank of a mesh can restore its shards in few large reads.
// The values, the step and all metadata stay, and so does state_hash (compare.h). Atomic: the old manifest is valid
// until the new one replaces it.

#include <cstdint>
#include <functional>

#include "execute/checkpoint/ownership.h"
#include "execute/checkpoint/restore.h"

namespace systole::checkpoint {

struct ReshardReport {
  std::int64_t chunks_before = 0, chunks_after = 0;
  std::int64_t reads_before = 0, reads_after = 0;  // pieces read by all ranks of the mesh together
  Bytes written;
};

using ShardingOf = std::function<Result<Sharding>(const TensorEntry&)>;

// Needs as much memory as the largest rank holds. `options`: chunk_bytes, compress and threads are used; the folder's
// keys are used for reading and writing. REQUIRES: nobody else writes into the folder.
// Errors: those of `sharding_of` and of assign_owners; corrupt, io, no_space: then the checkpoint is unchanged.
Result<ReshardReport> reshard(const Checkpoint& from, const Mesh& mesh, const ShardingOf& sharding_of,
                              const SaveOptions& options);

}  // namespace systole::checkpoint
