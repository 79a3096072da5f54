#include "execute/serve/drafts.h"

#include <algorithm>

namespace systole {

void draft_next(std::span<const std::int32_t> tokens, std::int64_t most, std::vector<std::int32_t>& drafts) {
  drafts.clear();
  for (const std::size_t n : {3U, 2U}) {
    if (tokens.size() <= n) continue;
    const auto before = tokens.first(tokens.size() - 1), last = tokens.last(n);
    const auto found = std::find_end(before.begin(), before.end(), last.begin(), last.end());
    if (found == before.end()) continue;
    const std::span<const std::int32_t> after = tokens.subspan(static_cast<std::size_t>(found - before.begin()) + n);
    for (std::size_t k = 0; static_cast<std::int64_t>(k) < most; ++k)
      drafts.push_back(k < after.size() ? after[k] : drafts[k - after.size()]);
    return;
  }
}

Status NgramDrafts::draft(std::span<DraftedSequence> sequences, std::int64_t room) {
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    DraftedSequence& sequence = sequences[i];
    draft_next(sequence.tokens, std::min(sequence.most, share_of(room, sequences.size() - i)), sequence.drafts);
    room -= std::ssize(sequence.drafts);
  }
  return {};
}

}  // namespace systole
