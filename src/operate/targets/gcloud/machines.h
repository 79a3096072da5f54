#pragma once
// machines.sh: the gcloud command that creates a workload's machines. It needs no job.

#include "operate/render/render.h"

namespace systole {

// Errors: invalid, what the command lacks, or contradicts in resources.
Result<Rendered> render_gcloud(const RenderRequest& ask);

}  // namespace systole
