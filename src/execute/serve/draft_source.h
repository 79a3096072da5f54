#pragma once
// Where the drafts of a decode come from (speculative decoding: Leviathan et al., ICML 2023): what the sequence has
// already (NgramDrafts, drafts.h), or a smaller model (ModelDrafts, model_drafts.h). An answer does not depend on its
// drafts (serving_loop.h), so a source may guess as it likes.

#include <cstdint>
#include <span>
#include <vector>

#include "ground/base/result.h"

namespace systole {

struct DraftedSequence {
  std::int64_t slot = 0;                  // of the engine that computes it
  std::span<const std::int32_t> tokens;   // prompt and answer so far, at least one
  std::int64_t most = 0;                  // drafts that are of use; none if it is below 1
  std::vector<std::int32_t> drafts = {};  // to be filled: of the tokens that follow
};

class DraftSource {
 public:
  virtual ~DraftSource() = default;
  // Fills `drafts` of each sequence, with at most `room` of all together; sequences share these equally, and what one
  // does not need, those after it may have. What the source keeps of a slot it uses only if it fits the sequence that
  // is there now, so nobody need tell it of sequences that ended.
  // Errors: of a device; weights that are not finite. REQUIRES: no two sequences have the same slot.
  virtual Status draft(std::span<DraftedSequence> sequences, std::int64_t room) = 0;
};

// A sequence's share if so many sequences, it included, have not had theirs.
inline std::int64_t share_of(std::int64_t room, std::size_t sharing) {
  const auto all = static_cast<std::int64_t>(sharing);
  return (room + all - 1) / all;
}

}  // namespace systole
