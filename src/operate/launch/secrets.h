#pragma once
// Resolves a workload's secret references on this node, when ranks are about to start. Values go only into the
// environment of ranks.

#include <string>
#include <utility>
#include <vector>

#include "describe/spec/workload.h"
#include "ground/base/result.h"

namespace systole {

// Names and values. Errors: unsupported (a variable, file, Secret or program that this node lacks), invalid (a file
// that others may read, a value with a NUL or without a character), io; each names the secret and its expected source,
// never its value. Calls `gcloud` for Secret Manager, unless SYSTOLE_SECRETS is a folder that has them.
Result<std::vector<std::pair<std::string, std::string>>> read_secrets(const Workload& workload);

// If the workload names secrets or checkpoint keys, makes new files of this process and its ranks readable by their
// owner only (umask), because they may contain secrets.
void keep_to_owner(const Workload& workload);

}  // namespace systole
