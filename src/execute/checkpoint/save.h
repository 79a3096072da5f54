#pragma once
// Saving a checkpoint atomically: it is whole or absent. The phases:
//
//   write   puts each chunk as an object named by the hash of its bytes
//   commit  makes the chunks' names durable, then puts the manifest, durably, if there is none
//   sweep   removes what retention does not keep (retention.h)
//
// An existing chunk that reads back correctly is not written again, so unchanged weights are stored once.
// Each writer, one or many, calls save with the boxes it owns; rank 0 commits for all (group.h).

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

// The box of a tensor that the caller owns. If the box is empty, the tensor is only named; a save in which no rank owns
// its elements fails.
struct TensorPart {
  std::string name;
  Role role = Role::parameter;
  DType dtype = DType::f32;
  Shape shape;                       // shape of the whole logical tensor
  Box box;                           // the part that is saved
  std::span<const std::byte> bytes;  // elements of `held`: dense, row-major
  int group = 0;  // tensors of different groups never share a chunk file: give frozen ones their own group
  // The box that `bytes` fills, if larger than `box`: it includes padding (outside the tensor), or elements saved by
  // another rank.
  std::optional<Box> held = {};

  Bytes saved_bytes() const { return Bytes(box.num_elements() * size_of(dtype)); }
};

enum class SavePhase { snapshot, write, commit, sweep };
const char* name_of(SavePhase phase);
// Called on the working thread when a phase begins (true) and ends (false, also on failure).
using PhaseHook = std::function<void(SavePhase, bool begins)>;

struct SaveOptions {
  Bytes chunk_bytes = 64 * kMiB;  // upper bound of a chunk file
  bool compress = false;          // with zstd; applies to a chunk if a sample shrinks by 10%
  int threads = 1;                // threads that hash and write chunks: one syncs while another writes
  SaveGroup group;
  Retention retention;
  PhaseHook on_phase;  // may be empty
};

struct SaveRequest {
  std::int64_t step = 0;
  std::int64_t number = 1;  // counts all saves of this generation, also failed ones; equal on all ranks (save_name)
  std::optional<Seconds> patience;  // replaces the group's patience, for a save with little time: before a preemption
  // Read from rank 0's request only:
  std::string date;  // ISO 8601, UTC
  Identity identity;
  std::optional<double> metric;  // for Retention::best; a metric that is not finite counts as none
  Node extra;                    // a JSON object, or null for {}
  std::vector<TensorPart> tensors;
};

struct WriteStats {
  std::int64_t chunks_written = 0, chunks_reused = 0;
  Bytes written, reused;
};

// What one writer has put into the folder: its chunks, and the pieces in them.
struct Fragment {
  std::vector<ChunkFile> chunks;
  std::vector<TensorEntry> tensors;
  WriteStats stats;
};

struct SaveReport {
  std::int64_t step = 0;
  WriteStats stats;
  SweepReport swept;
  std::optional<Error> sweep_error;  // set if the checkpoint is committed but the sweep failed
};

// Phase write. Checks names and boxes first. Errors: invalid (a part does not fit its tensor), no_space, io. On an
// error, the only writer removes what it wrote as far as the store allows; of several writers, rank 0 sweeps it.
Result<Fragment> write_chunks(const Folder& folder, std::span<const TensorPart> parts, const SaveOptions& options);

// Phase commit: puts one manifest of all fragments, rank 0's first. Replaces an existing checkpoint of the same step
// only if that is unchanged since it was read and the folder is still claimed by this group; of two concurrent commits
// of a step, one succeeds. Ignores `request.tensors`. Errors: invalid (the fragments do not cover each tensor exactly
// once), corrupt (a chunk is missing or has another length), busy (a newer claim), no_space, io.
Status commit(const Folder& folder, const SaveRequest& request, std::span<const Fragment> fragments,
              const SaveOptions& options);

// All phases but the snapshot, on this thread, for the only writer or for this rank. With several writers it returns on
// all of them after rank 0's sweep, and an error of one is an error of all. The statistics are this writer's.
Result<SaveReport> save(const Folder& folder, const SaveRequest& request, const SaveOptions& options);

// Upper bound of the bytes that a save of these tensors adds to the folder: nothing is reused. For check_space.
Bytes save_bytes(std::span<const TensorPart> parts, const SaveOptions& options);

}  // namespace systole::checkpoint
