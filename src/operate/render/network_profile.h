#pragma once
// NCCL settings for GPUs of several machines: variables of the catalog's table, and what the vendor's script on the
// node sets. Empty within one machine, and for machines that are not in the table.

#include <optional>
#include <string>
#include <vector>

#include "ground/catalog/nccl_row.h"
#include "operate/render/cluster_job.h"

namespace systole {

struct NetworkProfile {
  NcclProfile kind = NcclProfile::socket;
  std::vector<const NcclRow*> variables;  // except those in the workload's env
  std::vector<std::string> warnings;      // one for each that the workload sets differently
  std::string library_path;               // folder of the plugin, to put before the image's path; empty: nothing to add
  std::string script;                     // bash on the node, run before; empty: none

  // GPUDirect always uses whole machines with their network cards.
  bool is_direct() const { return kind != NcclProfile::socket; }
};

// Nothing: the job has no GPUs on several catalog machines. Errors: invalid: GPUDirect with a part of a machine.
Result<std::optional<NetworkProfile>> network_profile(const RenderRequest& ask, const ClusterJob& job,
                                                      NcclScheduler where);

// Lines of sh for start.sh: `script` and the library path. REQUIRES: start.sh is started by its path.
std::string network_shell(const NetworkProfile& profile);
// The same, and the variables as exports with their reasons.
std::string network_exports(const NetworkProfile& profile);

}  // namespace systole
