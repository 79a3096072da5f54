#pragma once
// Manifests of Kubernetes: Job, JobSet, PyTorchJob, and the pod in each.

#include "operate/import/draft.h"

namespace systole {

// Whether the text begins as one does.
bool is_manifest(std::string_view text);
// All documents of it: one of them is the job.
void read_manifest(const ImportSource& source, Draft& draft);

}  // namespace systole
