#pragma once
// Kubernetes manifests: Job, JobSet, PyTorchJob, and the pod in each.

#include "operate/import/draft.h"

namespace systole {

// Whether the text begins like a manifest.
bool is_manifest(std::string_view text);
// Reads all its documents: one of them is the job.
void read_manifest(const ImportSource& source, Draft& draft);

}  // namespace systole
