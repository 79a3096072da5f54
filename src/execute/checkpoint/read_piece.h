#pragma once
// Reading elements of a piece from its chunk file.
//
// Bytes that are contiguous both in the file and in the target are read straight into the target. Others are read run
// by run; runs less than 4 KiB apart are read in one call through a buffer, including the gap: a disk reads no less
// than a page, and a call for every few bytes would be slower than reading the bytes between them. Nothing else is
// read.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "execute/checkpoint/coding.h"
#include "execute/checkpoint/folder.h"
#include "execute/checkpoint/manifest.h"
#include "ground/base/hash.h"
#include "ground/store/sha256.h"

namespace systole::checkpoint {

// Hashes a chunk file's bytes as they are read, in order.
class ChunkHasher {
 public:
  ChunkHasher(const Folder& folder, const ChunkFile& chunk);
  void add(std::span<const std::byte> bytes);
  // Compares the hash with the chunk's. Errors: corrupt.
  Status check();

 private:
  const Folder& folder_;
  const ChunkFile& chunk_;
  Hasher hasher_;
  std::optional<Sha256> sha256_;  // if only signed checkpoints are trusted
};

// The raw bytes of a chunk, in which its pieces' offsets count. Borrows its arguments. One thread at a time.
class ChunkSource {
 public:
  // `tap` receives every byte that is read from the file; may be null.
  ChunkSource(const Folder& folder, const ChunkFile& chunk, ChunkHasher* tap = nullptr);
  // From a compressed or encrypted chunk whole frames are read; the last frame is cached. Errors: not_found, io,
  // corrupt (the file ends too early, or a frame was altered), invalid (encrypted, and no key).
  Status read(std::int64_t offset, std::span<std::byte> into);
  Bytes bytes_read() const { return read_; }

 private:
  Status read_stored(std::int64_t offset, std::span<std::byte> into);
  Status load_frame(std::size_t number);

  const Folder& folder_;
  const ChunkFile& chunk_;
  ChunkHasher* tap_;
  std::string path_;
  Bytes read_;
  std::optional<ChunkDecoder> decoder_;
  std::optional<std::size_t> frame_;  // the frame that `raw_` holds
  std::vector<std::byte> stored_;
  std::span<const std::byte> raw_;
};

// Copies the elements of `part` from the piece into `into`, the bytes of box `target`.
// REQUIRES: `part` lies in both boxes. Errors: as ChunkSource::read.
Status read_piece(ChunkSource& source, const Piece& piece, std::int64_t element_bytes, const Box& part,
                  const Box& target, std::span<std::byte> into);

// Checks that `box` lies in the tensor and in `held`, and that `into` has the size of `held`. Errors: invalid.
Status check_target(const TensorEntry& tensor, const Box& box, const Box& held, std::span<const std::byte> into);

}  // namespace systole::checkpoint
