#pragma once
// Messages between a writer and rank 0: the writer's part of a checkpoint, and rank 0's answer. Both are sealed texts
// (sealed_text.h). They are not durable: a power cut ends the save anyway.
//
//   part-<rank>.json   "save":"a1-2-7","rank":3,"world":4,"step":700,
//                      "failed":null or {"kind":"no_space","message":"…"},
//                      "chunks":[…],"tensors":[…]}        as in the manifest (manifest.h)
//   outcome.json       "save":"a1-2-7","step":700,"failed":null or {…}}

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "execute/checkpoint/folder.h"
#include "execute/checkpoint/manifest.h"
#include "ground/base/result.h"

namespace systole::checkpoint {

struct WriterPart {
  std::string save;  // group.h
  int rank = 0, world = 1;
  std::int64_t step = 0;
  std::optional<Error> failed;  // if set, there are no chunks
  std::vector<ChunkFile> chunks;
  std::vector<TensorEntry> tensors;
};

Status write_part(const Folder& folder, const WriterPart& part);
// Nothing if it does not exist yet. Errors: corrupt (damaged, or of another save or rank), io.
Result<std::optional<WriterPart>> read_part(const Folder& folder, std::string_view save, int rank);

// `failed`: why there is no checkpoint; nothing if there is one.
Status write_outcome(const Folder& folder, const std::string& save, std::int64_t step,
                     const std::optional<Error>& failed);
struct Outcome {
  std::optional<Error> failed;
};
// Nothing if it does not exist yet, or belongs to an earlier save of the same name and another step.
Result<std::optional<Outcome>> read_outcome(const Folder& folder, const std::string& save, std::int64_t step);

}  // namespace systole::checkpoint
