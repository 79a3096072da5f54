#pragma once

#include <string>

#include "operate/render/cluster_job.h"

namespace systole {

// A script of sh; its environment is SYSTOLE (the program), SYSTOLE_FILES, SYSTOLE_RUN, SYSTOLE_STATE (folder of its
// ledger, its log and the stop request), SYSTOLE_TOKEN, SYSTOLE_LEADER, SYSTOLE_PORT, SYSTOLE_NODE, SYSTOLE_JOB and
// SYSTOLE_NODES.
std::string host_script(const RenderRequest& ask, const ClusterJob& job);

}  // namespace systole
