#pragma once
// What `systole ckpt` shows, as data: the checkpoints of a folder and the damage in one of them.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "execute/checkpoint/restore.h"

namespace systole::checkpoint {

struct Summary {
  std::int64_t step = 0;
  std::string path;  // of the manifest
  bool blessed = false;
  std::optional<Error> unreadable;  // then the rest is empty
  std::string date;
  Identity identity;
  std::optional<double> metric;
  std::int64_t num_tensors = 0, num_chunks = 0;
  Bytes tensor_bytes, chunk_bytes;
  Bytes own_bytes;                          // of chunks that no other checkpoint names: what removing it would free
  std::vector<std::string> missing_chunks;  // names that are not there
};

// Every checkpoint of the folder, ascending by step; reads the manifests and the names of the chunks. Errors: io.
Result<std::vector<Summary>> list(const Folder& folder);

// One tensor's numbers, for `show` with a name.
struct TensorSummary {
  std::int64_t elements = 0, not_finite = 0;
  double min = 0, max = 0, mean = 0, rms = 0;  // of the finite elements; 0 when there are none
};
// Errors: not_found (with the nearest names), corrupt, io.
Result<TensorSummary> summarize(const Checkpoint& checkpoint, std::string_view name);

// Writes the tensors of a role as a safetensors file, under their logical names. Its metadata: format, step, model.
// Errors: as Checkpoint::read and write_safetensors.
Status export_safetensors(const Checkpoint& checkpoint, Role role, Store& store, std::string_view path);

}  // namespace systole::checkpoint
