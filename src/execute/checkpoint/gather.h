#pragma once
// How the writers of one save wait for each other (group.h tells the protocol): rank 0 for the parts, the others for
// the outcome. Every wait has a deadline and names who was waited for.

#include <string>
#include <vector>

#include "execute/checkpoint/save.h"

namespace systole::checkpoint {

// The other ranks' fragments, in order of ranks 1, 2, …. Errors: the failure of a rank that could not write, with its
// rank; io (ranks that are late by more than group.patience, by number); corrupt (a part that cannot be read); busy
// (the claim went to somebody else meanwhile); invalid (a rank that saves another step or counts another number of
// writers).
Result<std::vector<Fragment>> gather_parts(const Folder& folder, const std::string& save, std::int64_t step,
                                           const SaveGroup& group);

// How rank 0 says that the save ended. Errors: its failure; busy, as above; io (nothing was said within twice
// group.patience: rank 0 may itself wait that long for another rank).
Status await_outcome(const Folder& folder, const std::string& save, std::int64_t step, const SaveGroup& group);

// Every chunk is there with its length. Errors: corrupt or not_found, naming the rank that wrote it.
Status check_chunks(const Folder& folder, std::span<const Fragment> fragments);

}  // namespace systole::checkpoint
