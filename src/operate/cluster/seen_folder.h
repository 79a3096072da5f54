#pragma once
// Targets whose folders this machine sees as their nodes do: what jobs write, and what they came to, are files here.

#include <memory>
#include <string>

#include "operate/cluster/cluster.h"

namespace systole {

// The files ID.log and ID_TASK.log of a folder, read as they grow and as new ones come. Errors: io.
Result<std::unique_ptr<Output>> open_output_files(const std::string& folder, const std::string& id);

// ClusterClient::bring of such a target. Errors: not_found, io, no_space.
Status copy_seen_folder(const Record& record, const std::string& folder, const std::string& into);

}  // namespace systole
