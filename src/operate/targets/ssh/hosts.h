#pragma once
// run.sh, the list of machines, and the scripts that each of them starts.

#include "operate/render/cluster_job.h"

namespace systole {

// Errors: unsupported, invalid: what plain machines do not have, invalid hosts.
Result<Rendered> render_ssh(const RenderRequest& ask, const ClusterJob& job);

}  // namespace systole
