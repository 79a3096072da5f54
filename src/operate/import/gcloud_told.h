#pragma once
// Commands of gcloud that make nothing a workload says: why each stays behind, and each of its flags.

#include <string>
#include <string_view>
#include <vector>

#include "operate/import/flags.h"

namespace systole {

// Of "container clusters get-credentials", its words without flags. Empty: it is not among them.
std::string_view why_told(std::string_view command);

// `gcloud container clusters create` beside what starts a program or makes its nodes: render --on gke makes one.
void tell_cluster(const std::vector<SeenFlag>& seen, Draft& draft);
// `gcloud billing budgets create`.
void tell_budget(const std::vector<SeenFlag>& seen, Draft& draft);

}  // namespace systole
