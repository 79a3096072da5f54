#pragma once
// serve.sh, of workload: serve: starts a server on each of the plain machines, asks how they are, and stops them.

#include "operate/render/cluster_job.h"

namespace systole {

// REQUIRES: job.replicas. Errors: as of render_ssh.
Result<Rendered> render_ssh_servers(const RenderRequest& ask, const ClusterJob& job);

}  // namespace systole
