#pragma once
// Saving a checkpoint so that it is whole or absent. The order is the whole of it:
//
//   write   each chunk to a temporary file, synced, then renamed to its hash: a chunk's name implies its bytes
//   commit  sync the chunk folder; the manifest to a temporary file, synced, renamed, its folder synced
//   sweep   what retention lets go (retention.h)
//
// A chunk that is there already and reads back right is not written again, so weights that do not change cost one save.
// One writer or many: each calls save with what it owns, and rank 0 commits for all (group.h).

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "execute/checkpoint/folder.h"
#include "execute/checkpoint/group.h"
#include "execute/checkpoint/manifest.h"
#include "execute/checkpoint/retention.h"

namespace systole::checkpoint {

// The part of a tensor that the caller owns. A box may be empty: then the tensor is only named, and a save in which
// nobody owns its elements fails.
struct TensorPart {
  std::string name;
  Role role = Role::parameter;
  DType dtype = DType::f32;
  Shape shape;                       // of the whole logical tensor
  Box box;                           // which part is saved
  std::span<const std::byte> bytes;  // of `held`: dense, row-major
  int group = 0;  // tensors of different groups never share a chunk file: give frozen ones a group of their own
  // The box that `bytes` fills, when that is more than `box`: padding (it may leave the tensor), or elements that
  // another rank saves.
  std::optional<Box> held = {};

  Bytes saved_bytes() const { return Bytes(box.num_elements() * size_of(dtype)); }
};

enum class SavePhase { snapshot, write, commit, sweep };
const char* name_of(SavePhase phase);
// Called on the thread that does the work when a phase begins (true) and ends (false, also when it fails).
using PhaseHook = std::function<void(SavePhase, bool begins)>;

struct SaveOptions {
  Bytes chunk_bytes = 64 * kMiB;  // at most this much in one chunk file
  bool compress = false;          // with zstd, each chunk of which a sample shrinks by 10%
  int threads = 1;                // that hash and write chunks: one syncs while another writes
  SaveGroup group;
  Retention retention;
  PhaseHook on_phase;  // may be empty
};

struct SaveRequest {
  std::int64_t step = 0;
  std::int64_t number = 1;  // counts the saves of this generation, failed ones too, alike on all ranks (save_name)
  std::optional<Seconds> patience;  // instead of the group's, for a save that has little time: before a preemption
  // What is said of the checkpoint as a whole is rank 0's to say.
  std::string date;  // ISO 8601, UTC
  Identity identity;
  std::optional<double> metric;  // for Retention::best; one that is not finite counts as none
  Node extra;                    // a JSON object, or null for {}
  std::vector<TensorPart> tensors;
};

struct WriteStats {
  std::int64_t chunks_written = 0, chunks_reused = 0;
  Bytes written, reused;
};

// What one writer put into the folder: its chunks and the pieces in them.
struct Fragment {
  std::vector<ChunkFile> chunks;
  std::vector<TensorEntry> tensors;
  WriteStats stats;
};

struct SaveReport {
  std::int64_t step = 0;
  WriteStats stats;
  SweepReport swept;
  std::optional<Error> sweep_error;  // the checkpoint is there, but tidying up failed
};

// Phase write. Names and boxes are checked first. Errors: invalid (a part that does not fit its tensor), no_space, io;
// then what it had written is removed as far as the store lets it (of several writers, by rank 0's sweep). `writer`
// goes into the names of temporary files: no other writer, of this save or another, has the same at the same time.
Result<Fragment> write_chunks(const Folder& folder, std::span<const TensorPart> parts, const SaveOptions& options,
                              const std::string& writer = "0");

// Phase commit: one manifest of all fragments, that of rank 0 first. Replaces a checkpoint of the same step.
// `request.tensors` is not looked at. Errors: invalid (the fragments do not cover each tensor exactly once), corrupt (a
// chunk is gone or has another length), busy (a newer claim), no_space, io.
Status commit(const Folder& folder, const SaveRequest& request, std::span<const Fragment> fragments,
              const SaveOptions& options);

// All phases but the snapshot, on this thread: of the only writer, or of this rank. With several, it returns on all of
// them when rank 0 has swept, and an error of one is an error of all. The statistics are this writer's.
Result<SaveReport> save(const Folder& folder, const SaveRequest& request, const SaveOptions& options);

// The bytes that a save of these tensors puts into the folder when nothing can be reused, for check_space.
Bytes save_bytes(std::span<const TensorPart> parts, const SaveOptions& options);

}  // namespace systole::checkpoint
