#pragma once
// How the parts of tensors are laid into chunk files: cut to pieces that fit, and laid one after another until a file
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
  std::int64_t offset = 0;  // in the chunk file
};

struct PackedChunk {
  std::vector<PackedPiece> pieces;
  std::int64_t bytes = 0;
};

// A single element larger than chunk_bytes has a file of its own.
std::vector<PackedChunk> pack(std::span<const TensorPart> parts, Bytes chunk_bytes);

// Hands the bytes of a chunk file, gaps included, to `take` in order. Where a part holds more than its box, short
// runs are gathered first. REQUIRES: each part's bytes fill what it holds.
Status for_each_span(const PackedChunk& chunk, std::span<const TensorPart> parts,
                     const std::function<Status(std::span<const std::byte>)>& take);

}  // namespace systole::checkpoint
