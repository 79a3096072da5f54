#pragma once
// Chunk files that are compressed, encrypted or both. The raw bytes of a chunk (in which its pieces' offsets count) are
// cut into frames of 1 MiB, the last one shorter. Each frame is coded alone, so reading a few rows decodes few frames:
//
//   frame   zstd (level 1) of the raw bytes, if the chunk is compressed
//           then AES-256-GCM of that, if it has a salt: as many bytes again, and a tag of 16
//
// Each encrypted chunk has its own key: HKDF-SHA256 of the checkpoint's key and 32 random bytes, the salt, which is in
// the manifest. The nonce is the frame's number. So no nonce is used twice with a key, no counter is stored, and equal
// tensors have different ciphertexts. Each tag also authenticates the chunk's raw size and whether it is compressed;
// with the frame number and the salt, this detects swapped, dropped or repeated frames and chunks.

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "execute/checkpoint/crypto.h"
#include "execute/checkpoint/manifest.h"

namespace systole::checkpoint {

inline constexpr std::int64_t kFrameBytes = 1 << 20;

// Encodes the frames of one chunk, in order.
class ChunkEncoder {
 public:
  // `key`: nothing if the chunk is only compressed.
  ChunkEncoder(Bytes raw, bool zstd, const std::optional<Key256>& key);
  ~ChunkEncoder();
  // Encodes the next kFrameBytes (the last frame: the rest). The result is valid until the next call.
  std::span<const std::byte> frame(std::span<const std::byte> raw);
  const Coding& coding() const { return coding_; }  // of the frames so far

 private:
  struct Zstd;
  std::unique_ptr<Zstd> zstd_;
  std::optional<Key256> key_;  // of this chunk
  Coding coding_;
  std::vector<std::byte> stored_;
};

// Decodes frame by frame. Not thread-safe.
class ChunkDecoder {
 public:
  // REQUIRES: `key` is set if the coding has a salt.
  ChunkDecoder(const Coding& coding, const std::optional<Key256>& key);
  ~ChunkDecoder();
  // Overwrites `stored`. Errors: corrupt.
  Result<std::span<const std::byte>> frame(std::size_t number, std::span<std::byte> stored);

 private:
  struct Zstd;
  std::unique_ptr<Zstd> zstd_;
  const Coding& coding_;
  std::optional<Key256> key_;
  std::vector<std::byte> raw_;
};

std::int64_t frames_of(Bytes raw);                                  // number of frames
std::int64_t frame_size(const Coding& coding, std::size_t number);  // raw bytes of one frame

// True if a sample shrinks by at least 10%.
bool is_worth_compressing(std::span<const std::byte> sample);

}  // namespace systole::checkpoint
