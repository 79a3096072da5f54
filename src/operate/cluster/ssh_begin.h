#pragma once
// A run begun on plain machines: on all of them, or on none.

#include "operate/cluster/record.h"
#include "operate/cluster/ssh_text.h"

namespace systole {

// Nothing is started before each machine has answered, has room, the same program and no run of this name. Those that
// follow are started first, and end by themselves where nobody comes to lead; from the moment that the first machine
// starts, the run is begun, whatever becomes of who began it. Until then all is taken back.
// Returns the job's name. Errors: as ClusterClient::send.
Result<std::string> begin_on_hosts(const Record& record, const std::vector<SshHost>& hosts);

}  // namespace systole
