#pragma once
// For targets whose nodes share their folders with this machine: jobs' output and results are local files.

#include <memory>
#include <string>

#include "operate/cluster/cluster.h"

namespace systole {

// The files ID.log and ID_TASK.log of a folder, read as they grow and as new ones appear. Errors: io.
Result<std::unique_ptr<Output>> open_output_files(const std::string& folder, const std::string& id);

// ClusterClient::bring for such a target. Errors: not_found, io, no_space.
Status copy_shared_folder(const Record& record, const std::string& folder, const std::string& into);

}  // namespace systole
