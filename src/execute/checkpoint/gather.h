#pragma once
// The waits in a group save (protocol: group.h): rank 0 waits for the parts, the others for the outcome. Every wait has
// a deadline, and its error names the late ranks.

#include <string>
#include <vector>

#include "execute/checkpoint/save.h"

namespace systole::checkpoint {

// The other ranks' fragments, in order of ranks 1, 2, …. Errors: the failure of a rank that could not write, with its
// rank; io (ranks that are late by more than group.patience, by number); corrupt (an unreadable part); busy (the claim
// is now another's); invalid (a rank that saves another step or has another number of writers).
Result<std::vector<Fragment>> gather_parts(const Folder& folder, const std::string& save, std::int64_t step,
                                           const SaveGroup& group);

// Waits until rank 0 says that the save ended. Errors: rank 0's failure; busy, as above; io (no answer within twice
// group.patience: rank 0 may itself wait that long for another rank).
Status await_outcome(const Folder& folder, const std::string& save, std::int64_t step, const SaveGroup& group);

// Checks that every chunk exists with its length. Errors: corrupt or not_found, naming the rank that wrote it.
Status check_chunks(const Folder& folder, std::span<const Fragment> fragments);

}  // namespace systole::checkpoint
