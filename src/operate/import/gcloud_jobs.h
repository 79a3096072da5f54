#pragma once
// `gcloud ai custom-jobs create`: a Vertex AI job.

#include <string>
#include <vector>

#include "operate/import/flags.h"

namespace systole {

// Pools that differ only in their size become nodes of one workload. `line`: as pasted.
void read_custom_job(const std::vector<ParsedFlag>& seen, const std::string& line, Draft& draft);

}  // namespace systole
