#pragma once
// Drafts of the next tokens of a sequence from its own tokens (prompt lookup: Saxena 2023,
// https://github.com/apoorvumang/prompt-lookup-decoding; the n-gram method of vLLM): what followed its last three tokens,
// or else its last two, when they were there before.
//
//   std::vector<std::int32_t> drafts;
//   draft_next(std::vector{1, 2, 3, 4, 9, 1, 2, 3}, 3, drafts);   // 4, 9, 1
//
// The last of several places counts. Where the tokens after it end, the drafts go on with themselves: a sequence that goes
// in circles is drafted in circles.

#include "execute/serve/draft_source.h"

namespace systole {

// Replaces `drafts` by `most` tokens; by none if nothing is found or `most` is below 1. O(tokens).
void draft_next(std::span<const std::int32_t> tokens, std::int64_t most, std::vector<std::int32_t>& drafts);

class NgramDrafts : public DraftSource {
 public:
  Status draft(std::span<DraftedSequence> sequences, std::int64_t room) override;
};

}  // namespace systole
