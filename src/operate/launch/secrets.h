#pragma once
// Secrets of a workload on this node: what its references stand for, read when ranks are about to start. Values go into
// the environment of ranks and nowhere else.

#include <string>
#include <utility>
#include <vector>

#include "describe/spec/workload.h"
#include "ground/base/result.h"

namespace systole {

// Names and values. Errors: unsupported (a variable, file, Secret or program that this node lacks), invalid (a file
// that others may read, a value with a NUL or without a character), io; each names the secret and where it should
// stand, never what stands there. Asks `gcloud` for those of Secret Manager, unless SYSTOLE_SECRETS is a folder that
// has them.
Result<std::vector<std::pair<std::string, std::string>>> read_secrets(const Workload& workload);

// What a process whose workload names secrets or keys of checkpoints writes, and what its ranks write, is its owner's
// alone from here on (umask): it may hold what they made.
void keep_to_owner(const Workload& workload);

}  // namespace systole
