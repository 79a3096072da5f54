#pragma once
// `gcloud filestore instances create`: becomes a volume of the workload, which GKE creates instead.

#include <string>
#include <vector>

#include "operate/import/flags.h"

namespace systole {

// `line`: as pasted.
void read_filestore(const std::vector<ParsedFlag>& seen, const std::string& line, Draft& draft);

}  // namespace systole
