#pragma once
// Plain machines, by the system's ssh. No machine of ours keeps anything for them: what runs is asked of the machines
// themselves (ssh_host.h), each time, all at once and each within kHostPatience.

#include <memory>

#include "operate/cluster/cluster.h"

namespace systole {

// Errors: not_found, without ssh and tar in PATH.
Result<std::unique_ptr<ClusterClient>> open_ssh();

}  // namespace systole
