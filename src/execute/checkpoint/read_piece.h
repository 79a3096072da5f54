#pragma once
// Reading elements of a piece out of its chunk file.
//
// Bytes that lie together both in the file and in the target are read straight into it. Others are read run by run;
// runs less than kReadGap apart are read at once, with the gap, through a buffer: a disk reads no less than a page, and
// a call for every few bytes would take longer than the bytes between them. Nothing else is read that was not asked
// for.

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

inline constexpr std::int64_t kReadGap = 4096;         // bytes
inline constexpr std::int64_t kStagedBytes = 4 << 20;  // of the buffer

// The hash of a chunk file's bytes as they are read, in order.
class ChunkHasher {
 public:
  ChunkHasher(const Folder& folder, const ChunkFile& chunk);
  void add(std::span<const std::byte> bytes);
  // They are the chunk's. Errors: corrupt.
  Status check();

 private:
  const Folder& folder_;
  const ChunkFile& chunk_;
  Hasher hasher_;
  std::optional<Sha256> sha256_;  // where only signed checkpoints are trusted
};

// The raw bytes of a chunk, as its pieces count them. Borrows its arguments; for one thread.
class ChunkSource {
 public:
  // `tap` is given every byte that is read from the file; may be null.
  ChunkSource(const Folder& folder, const ChunkFile& chunk, ChunkHasher* tap = nullptr);
  // Of a chunk that is compressed or encrypted whole frames are read, one that was just read not again. Errors:
  // not_found, io, corrupt (the file ends too early, or a frame was altered), invalid (encrypted, and no key).
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
  std::optional<std::size_t> frame_;  // that `raw_` is of
  std::vector<std::byte> stored_;
  std::span<const std::byte> raw_;
};

// Copies the elements of `part` out of the piece into `into`, the bytes of box `target`.
// REQUIRES: `part` lies in both boxes. Errors: as ChunkSource::read.
Status read_piece(ChunkSource& source, const Piece& piece, std::int64_t element_bytes, const Box& part,
                  const Box& target, std::span<std::byte> into);

// `box` lies in the tensor and in `held`, and `into` has as many bytes as `held`. Errors: invalid.
Status check_target(const TensorEntry& tensor, const Box& box, const Box& held, std::span<const std::byte> into);

}  // namespace systole::checkpoint
