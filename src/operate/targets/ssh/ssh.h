#pragma once
// Plain machines, by the system's ssh. No server of ours keeps state about them: the machines themselves are queried
// (ssh_host.h), each time, all at once and each within kHostPatience.

#include <memory>

#include "operate/cluster/cluster.h"

namespace systole {

// Errors: not_found, ssh or tar is not in PATH.
Result<std::unique_ptr<ClusterClient>> open_ssh();

}  // namespace systole
