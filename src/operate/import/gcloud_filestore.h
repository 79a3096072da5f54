#pragma once
// `gcloud filestore instances create`: a volume of the workload, which GKE makes in its place.

#include <string>
#include <vector>

#include "operate/import/flags.h"

namespace systole {

// `line`: as it was pasted.
void read_filestore(const std::vector<SeenFlag>& seen, const std::string& line, Draft& draft);

}  // namespace systole
