#pragma once
// How the parts of tensors are laid into chunk files: cut to pieces that fit, and laid one after another until a file
// is full, so that many small tensors make few files. Pure: the same parts always give the same files.

#include <cstdint>
#include <span>
#include <vector>

#include "execute/checkpoint/save.h"

namespace systole::checkpoint {

inline constexpr std::int64_t kPieceAlignment = 64;  // bytes; the gaps are zeros

struct PackedPiece {
  std::size_t part = 0;  // index of the TensorPart
  Box box;
  std::span<const std::byte> bytes;
  std::int64_t offset = 0;  // in the chunk file
};

struct PackedChunk {
  std::vector<PackedPiece> pieces;
  std::int64_t bytes = 0;
};

// REQUIRES: each part's bytes fill its box. A single element larger than chunk_bytes has a file of its own.
std::vector<PackedChunk> pack(std::span<const TensorPart> parts, Bytes chunk_bytes);

}  // namespace systole::checkpoint
