#pragma once
// Chunk files that are compressed, encrypted or both. The raw bytes of a chunk (what its pieces' offsets count) are cut
// into frames of 1 MiB, the last one shorter; each is coded alone, so that a reader of a few rows decodes a few frames:
//
//   frame   zstd (level 1) of the raw bytes, where the chunk says so
//           then AES-256-GCM of that, where it has a salt: as many bytes again and the tag of 16
//
// Each encrypted chunk has a key of its own: HKDF-SHA256 of the checkpoint's key with 32 random bytes, the salt, which
// the manifest names. The nonce is the frame's number. So no nonce is used twice with a key, without anybody counting,
// and equal tensors do not look equal. Bound into each tag: the chunk's raw size and whether it is compressed; with the
// number and the salt that leaves no room to swap, drop or repeat frames or chunks.

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "execute/checkpoint/crypto.h"
#include "execute/checkpoint/manifest.h"

namespace systole::checkpoint {

inline constexpr std::int64_t kFrameBytes = 1 << 20;

// Makes the frames of one chunk, in order.
class ChunkEncoder {
 public:
  // `key`: nothing for a chunk that is only compressed.
  ChunkEncoder(Bytes raw, bool zstd, const std::optional<Key256>& key);
  ~ChunkEncoder();
  // What stands in the file for these kFrameBytes (the last frame: what is left); valid until the next call.
  std::span<const std::byte> frame(std::span<const std::byte> raw);
  const Coding& coding() const { return coding_; }  // of the frames so far

 private:
  struct Zstd;
  std::unique_ptr<Zstd> zstd_;
  std::optional<Key256> key_;  // of this chunk
  Coding coding_;
  std::vector<std::byte> stored_;
};

// Undoes it, frame by frame. Not thread-safe.
class ChunkDecoder {
 public:
  // REQUIRES: `key` is there when the coding has a salt.
  ChunkDecoder(const Coding& coding, const std::optional<Key256>& key);
  ~ChunkDecoder();
  // `stored` is spoiled. Errors: corrupt.
  Result<std::span<const std::byte>> frame(std::size_t number, std::span<std::byte> stored);

 private:
  struct Zstd;
  std::unique_ptr<Zstd> zstd_;
  const Coding& coding_;
  std::optional<Key256> key_;
  std::vector<std::byte> raw_;
};

std::int64_t frames_of(Bytes raw);                                  // how many
std::int64_t frame_size(const Coding& coding, std::size_t number);  // raw bytes of one

// A sample shrinks by 10% at least.
bool is_worth_compressing(std::span<const std::byte> sample);

}  // namespace systole::checkpoint
