#pragma once
// Starts a run on plain machines: on all of them, or on none.

#include "operate/cluster/record.h"
#include "operate/targets/ssh/ssh_text.h"

namespace systole {

// Starts nothing before each machine has answered, has disk space, the same program and no run of this name. Followers
// start first, and end by themselves if no leader comes. Once the leader has started, the run has begun, even if this
// process dies. Until then everything is undone on failure. Returns the job's name. Errors: as ClusterClient::send.
Result<std::string> begin_on_hosts(const Record& record, const std::vector<SshHost>& hosts);

}  // namespace systole
