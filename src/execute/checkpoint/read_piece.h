#pragma once
// Reading elements of a piece out of its chunk file.
//
// Bytes that lie together both in the file and in the target are read straight into it. Others are read run by run;
// runs less than kReadGap apart are read at once, with the gap, through a buffer: a disk reads no less than a page, and
// a call for every few bytes would take longer than the bytes between them. Nothing else is read that was not asked
// for.

#include <cstdint>
#include <span>
#include <string>

#include "execute/checkpoint/folder.h"
#include "execute/checkpoint/manifest.h"

namespace systole::checkpoint {

inline constexpr std::int64_t kReadGap = 4096;         // bytes
inline constexpr std::int64_t kStagedBytes = 4 << 20;  // of the buffer

// The bytes of a chunk as its pieces count them. Borrows both.
class ChunkSource {
 public:
  ChunkSource(const Folder& folder, const ChunkFile& chunk) : store_(*folder.store), path_(folder.chunk(chunk.hash)) {}
  // Errors: not_found, io, corrupt (the file ends too early).
  Status read(std::int64_t offset, std::span<std::byte> into) const {
    read_ += Bytes(into.size());
    return into.empty() ? Status() : store_.read(path_, offset, into);
  }
  Bytes bytes_read() const { return read_; }

 private:
  Store& store_;
  std::string path_;
  mutable Bytes read_;  // one thread uses a source
};

// Copies the elements of `part` out of the piece into `into`, the bytes of box `target`.
// REQUIRES: `part` lies in both boxes. Errors: as ChunkSource::read.
Status read_piece(const ChunkSource& source, const Piece& piece, std::int64_t element_bytes, const Box& part,
                  const Box& target, std::span<std::byte> into);

// `box` lies in the tensor and in `held`, and `into` has as many bytes as `held`. Errors: invalid.
Status check_target(const TensorEntry& tensor, const Box& box, const Box& held, std::span<const std::byte> into);

}  // namespace systole::checkpoint
