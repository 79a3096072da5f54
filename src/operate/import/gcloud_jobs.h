#pragma once
// `gcloud ai custom-jobs create`: a job of Vertex AI.

#include <string>
#include <vector>

#include "operate/import/flags.h"

namespace systole {

// Pools of a job that differ in their number alone are nodes of one workload. `line`: as it was pasted.
void read_custom_job(const std::vector<SeenFlag>& seen, const std::string& line, Draft& draft);

}  // namespace systole
