#pragma once
// Opening a checkpoint, and reading any box of any tensor from it, independent of the mesh that wrote it.

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

// An open checkpoint: its manifest is valid, and its chunks were checked as `Verify` asked. Read-only; thread-safe.
// Borrows the folder's store.
class Checkpoint {
 public:
  Checkpoint(Folder folder, Manifest manifest);

  const Manifest& manifest() const { return *manifest_; }
  const Folder& folder() const { return folder_; }

  // Fills `into` with the elements of `box` of tensor `name`, dense, row-major. Bytes read: see read_piece.h. Errors:
  // not_found (no such tensor; with the nearest names), invalid (the tensor has another dtype or shape, the box leaves
  // it, or `into` has another size), corrupt, io.
  Status read(std::string_view name, DType dtype, const Shape& shape, const Box& box, std::span<std::byte> into) const;
  Status read(std::string_view name, const Box& box, std::span<std::byte> into) const;  // stored dtype and shape
  Status read(const TensorEntry& tensor, const Box& box, std::span<std::byte> into) const;
  // `into` is the buffer of box `held`, which contains `box` and may leave the tensor (padding). Only the elements of
  // `box` are written.
  Status read_into(std::string_view name, DType dtype, const Shape& shape, const Box& box, const Box& held,
                   std::span<std::byte> into) const;
  Status read_into(const TensorEntry& tensor, const Box& box, const Box& held, std::span<std::byte> into) const;

  // Errors: not_found, with the nearest names; invalid if it has another dtype or shape.
  Result<const TensorEntry*> find(std::string_view name) const;
  Result<const TensorEntry*> find(std::string_view name, DType dtype, const Shape& shape) const;

 private:
  Folder folder_;
  std::shared_ptr<const Manifest> manifest_;
};

enum class Verify {
  contents,  // hashes every chunk: reads all bytes once
  lengths,   // every chunk exists with its length
};

// Reads a manifest; tries a second time if it does not verify, in case of a transient read error. `text` receives the
// text read. Errors: not_found, corrupt, unsupported (a newer version), io.
Result<Manifest> read_manifest(const Folder& folder, std::int64_t step, std::string* text);

// The same, and checks the seals that the folder's keys require (invalid: keys.h); not_found lists the existing steps.
Result<Manifest> load_manifest(const Folder& folder, std::int64_t step);
Result<Checkpoint> open_step(const Folder& folder, std::int64_t step, Verify verify = Verify::contents);

// True if a checkpoint fails to open although it may be intact: it needs another key, or this user may not read it. All
// other errors mean damage.
bool is_refused(const Error& unreadable);

struct Rejected {
  std::int64_t step = 0;
  std::string path;  // path of the manifest
  Error reason;
};

struct Restored {
  Checkpoint checkpoint;
  std::vector<Rejected> rejected;  // newer checkpoints that did not verify, newest first
};

// The newest checkpoint that verifies. Errors: not_found (no checkpoint exists), corrupt (none of them verifies;
// `others` has the reason for each), unsupported (the newest is from a newer Systole; no older one silently replaces
// it), io.
Result<Restored> open_newest(const Folder& folder, Verify verify = Verify::contents);

// The newest checkpoint that `open` does not reject as damaged (corrupt, io, not_found); open_newest calls this with
// open_step. Errors: as open_newest, and other errors of `open`.
Result<Restored> newest_of(const Folder& folder, const std::function<Result<Checkpoint>(std::int64_t step)>& open);

// A damaged chunk file of a checkpoint, and the tensors it holds.
struct Damage {
  std::string chunk;  // hash
  Error reason;
  std::vector<std::string> tensors;
};
// Checks every chunk, on a few threads. Empty: no damage. `share`: splits the work among processes; each checks every
// world-th chunk. Errors: as load_manifest.
struct VerifyShare {
  int rank = 0, world = 1;
};
Result<std::vector<Damage>> find_damage(const Folder& folder, const Manifest& manifest,
                                        Verify verify = Verify::contents, int threads = 1, VerifyShare share = {});

// Checks the length and hash of a chunk file, and its SHA-256 if the folder's keys trust only signed ones. Errors:
// corrupt, io, not_found.
Status verify_chunk(const Folder& folder, const ChunkFile& chunk, Verify verify = Verify::contents);

}  // namespace systole::checkpoint
