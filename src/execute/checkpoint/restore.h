#pragma once
// Opening a checkpoint and reading any box of any tensor out of it, whatever mesh wrote it.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "execute/checkpoint/folder.h"
#include "execute/checkpoint/manifest.h"

namespace systole::checkpoint {

// A checkpoint that was opened: its manifest holds, and its chunks were found as `Verify` asked. Reads only. Safe to
// use from several threads. Borrows the folder's store.
class Checkpoint {
 public:
  Checkpoint(Folder folder, Manifest manifest);

  const Manifest& manifest() const { return *manifest_; }
  const Folder& folder() const { return folder_; }

  // Fills `into` with the elements of `box` of tensor `name`, dense, row-major, and reads no more bytes for it
  // than read_piece.h says. Errors: not_found (no such tensor,
  // with the nearest names), invalid (the tensor has another dtype or shape, the box leaves it, `into` has another
  // size), corrupt, io.
  Status read(std::string_view name, DType dtype, const Shape& shape, const Box& box, std::span<std::byte> into) const;
  Status read(std::string_view name, const Box& box, std::span<std::byte> into) const;  // of the stored dtype and shape
  Status read(const TensorEntry& tensor, const Box& box, std::span<std::byte> into) const;
  // `into` is the buffer of box `held`, which has `box` in it and may leave the tensor (padding); the rest of it is
  // left as it is.
  Status read_into(std::string_view name, DType dtype, const Shape& shape, const Box& box, const Box& held,
                   std::span<std::byte> into) const;
  Status read_into(const TensorEntry& tensor, const Box& box, const Box& held, std::span<std::byte> into) const;

  // Errors: not_found, with the nearest names; invalid when it has another dtype or shape.
  Result<const TensorEntry*> find(std::string_view name) const;
  Result<const TensorEntry*> find(std::string_view name, DType dtype, const Shape& shape) const;

 private:
  Folder folder_;
  std::shared_ptr<const Manifest> manifest_;
};

enum class Verify {
  contents,  // every chunk's hash: reads all bytes once
  lengths,   // every chunk is there with its length
};

// Reads a manifest, a second time when it does not verify: one bad read condemns no file. `text` becomes what was read.
// Errors: not_found, corrupt, unsupported (a newer version), io.
Result<Manifest> read_manifest(const Folder& folder, std::int64_t step, std::string* text);

// The same, and it has the seals that the folder's keys ask for (invalid: keys.h); not_found says which there are.
Result<Manifest> load_manifest(const Folder& folder, std::int64_t step);
Result<Checkpoint> open_step(const Folder& folder, std::int64_t step, Verify verify = Verify::contents);

struct Rejected {
  std::int64_t step = 0;
  std::string path;  // of the manifest
  Error reason;
};

struct Restored {
  Checkpoint checkpoint;
  std::vector<Rejected> rejected;  // the newer ones that did not verify, newest first
};

// The newest checkpoint that verifies. Errors: not_found (there is none at all), corrupt (there are, and none verifies:
// `others` says why for each), unsupported (the newest is of a newer version of Systole: an older one is not taken in
// its place silently), io.
Result<Restored> open_newest(const Folder& folder, Verify verify = Verify::contents);

// The newest checkpoint that `open` does not refuse as damaged (corrupt, io, not_found); open_newest is this over
// open_step. Errors: as open_newest, and what `open` refuses for another reason.
Result<Restored> newest_of(const Folder& folder, const std::function<Result<Checkpoint>(std::int64_t step)>& open);

// One damaged chunk file of a checkpoint, and what it held.
struct Damage {
  std::string chunk;  // hash
  Error reason;
  std::vector<std::string> tensors;
};
// Looks at every chunk, a few threads each at another one. Empty: all is well. `share`: of several processes that look
// together, each at every world-th chunk. Errors: as load_manifest.
struct VerifyShare {
  int rank = 0, world = 1;
};
Result<std::vector<Damage>> find_damage(const Folder& folder, const Manifest& manifest,
                                        Verify verify = Verify::contents, int threads = 1, VerifyShare share = {});

// The length and hash of a chunk file hold, and its SHA-256 where the folder's keys trust only signed ones. Errors:
// corrupt, io, not_found.
Status verify_chunk(const Folder& folder, const ChunkFile& chunk, Verify verify = Verify::contents);

}  // namespace systole::checkpoint
