#pragma once
// The data that `systole ckpt` shows: the checkpoints of a folder, and the damage in one of them.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "execute/checkpoint/restore.h"
#include "ground/store/store.h"

namespace systole::checkpoint {

struct Summary {
  std::int64_t step = 0;
  std::string path;  // path of the manifest
  bool blessed = false;
  std::optional<Error> unreadable;  // if set, the other fields are empty
  std::string date;
  Identity identity;
  std::optional<double> metric;
  std::int64_t num_tensors = 0, num_chunks = 0;
  Bytes tensor_bytes, chunk_bytes;
  Bytes own_bytes;                          // bytes of chunks that no other checkpoint names: freed by removal
  std::vector<std::string> missing_chunks;  // hashes of absent chunks
};

// Every checkpoint of the folder, ascending by step. Reads the manifests and the names of the chunks. Errors: io.
Result<std::vector<Summary>> list(const Folder& folder);

// Statistics of one tensor, for `show` with a name.
struct TensorSummary {
  std::int64_t elements = 0, not_finite = 0;
  double min = 0, max = 0, mean = 0, rms = 0;  // of the finite elements; 0 if there are none
};
// Errors: not_found (with the nearest names), corrupt, io.
Result<TensorSummary> summarize(const Checkpoint& checkpoint, std::string_view name);

// Writes the tensors of a role as a safetensors file, under their logical names. Its metadata: format, step, model.
// Errors: as Checkpoint::read and write_safetensors.
Status export_safetensors(const Checkpoint& checkpoint, Role role, Store& store, std::string_view path);

}  // namespace systole::checkpoint
