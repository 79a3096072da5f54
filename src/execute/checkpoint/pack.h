#pragma once
// Packs the parts of tensors into chunk files: cuts them into pieces that fit, and puts piece after piece until a file
// is full, so that many small tensors make few files. Pure: the same parts always give the same files.

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "execute/checkpoint/save.h"

namespace systole::checkpoint {

inline constexpr std::int64_t kPieceAlignment = 64;  // bytes; the gaps are zeros

struct PackedPiece {
  std::size_t part = 0;  // index of the TensorPart
  Box box;
  std::int64_t bytes = 0;
  std::int64_t offset = 0;  // bytes in the chunk file
};

struct PackedChunk {
  std::vector<PackedPiece> pieces;
  std::int64_t bytes = 0;
};

// A single element larger than chunk_bytes gets its own file.
std::vector<PackedChunk> pack(std::span<const TensorPart> parts, Bytes chunk_bytes);

// Passes the bytes of a chunk file, gaps included, to `take` in order. If a part's buffer is larger than its box, short
// runs are gathered first. REQUIRES: each part's bytes fill its `held` box.
Status for_each_span(const PackedChunk& chunk, std::span<const TensorPart> parts,
                     const std::function<Status(std::span<const std::byte>)>& take);

}  // namespace systole::checkpoint
