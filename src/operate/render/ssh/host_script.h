#pragma once

#include <string>

#include "operate/render/cluster_job.h"

namespace systole {

// Of sh; its environment is SYSTOLE (the program), SYSTOLE_FILES, SYSTOLE_RUN, SYSTOLE_STATE (for its ledger, its log
// and whether it is to stop), SYSTOLE_TOKEN, SYSTOLE_LEADER, SYSTOLE_PORT, SYSTOLE_NODE, SYSTOLE_JOB and SYSTOLE_NODES.
std::string host_script(const RenderAsk& ask, const ClusterJob& job);

}  // namespace systole
