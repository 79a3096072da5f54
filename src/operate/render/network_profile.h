#pragma once
// What NCCL is told where GPUs of several machines work together: variables of the catalog's table, and what a vendor's
// own script on the node says besides. Within one machine, and on machines that the table does not name, nothing.

#include <optional>
#include <string>
#include <vector>

#include "ground/catalog/nccl_row.h"
#include "operate/render/cluster_job.h"

namespace systole {

struct NetworkProfile {
  NcclProfile kind = NcclProfile::socket;
  std::vector<const NcclRow*> variables;  // but those that the workload's env says
  std::vector<std::string> warnings;      // of each that it says otherwise
  std::string library_path;               // where the plugin is, before what the image says; empty: nothing to add
  std::string script;                     // of bash, on the node, that is run before; empty: none

  // All of GPUDirect is of whole machines and their network cards.
  bool is_direct() const { return kind != NcclProfile::socket; }
};

// Nothing: the job has no GPUs on several machines of the catalog. Errors: invalid: GPUDirect with a part of a machine.
Result<std::optional<NetworkProfile>> network_profile(const RenderAsk& ask, const ClusterJob& job, NcclScheduler where);

// Lines of sh for start.sh: `script` and the library path. REQUIRES: start.sh is run by its path.
std::string network_shell(const NetworkProfile& profile);
// The variables, too, as exports with their reasons.
std::string network_exports(const NetworkProfile& profile);

}  // namespace systole
