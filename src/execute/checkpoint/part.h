#pragma once
// What a writer tells rank 0 about its part of a checkpoint, and what rank 0 tells back. Both are sealed texts
// (sealed_text.h) put in place by a rename; they need not survive a power cut, which ends the save anyway.
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
  std::optional<Error> failed;  // then there are no chunks
  std::vector<ChunkFile> chunks;
  std::vector<TensorEntry> tensors;
};

Status write_part(const Folder& folder, const WriterPart& part);
// Nothing while it is not there. Errors: corrupt (damaged, or not of this save and rank), io.
Result<std::optional<WriterPart>> read_part(const Folder& folder, std::string_view save, int rank);

// `failed`: why there is no checkpoint, nothing when there is one.
Status write_outcome(const Folder& folder, const std::string& save, std::int64_t step,
                     const std::optional<Error>& failed);
struct Outcome {
  std::optional<Error> failed;
};
// Nothing while it is not there, or is of an earlier save whose name was given again, of another step.
Result<std::optional<Outcome>> read_outcome(const Folder& folder, const std::string& save, std::int64_t step);

}  // namespace systole::checkpoint
