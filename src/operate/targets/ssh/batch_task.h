#pragma once
// A job of `systole batch` on plain machines: batch.sh, which brings it to each and starts it, as a service of systemd;
// with a schedule, at the times of a timer.

#include "operate/render/cluster_job.h"

namespace systole {

// REQUIRES: ask.batch. Errors: as of render_ssh.
Result<Rendered> render_ssh_batch(const RenderRequest& ask, const ClusterJob& job);

}  // namespace systole
