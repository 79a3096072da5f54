#pragma once
// gcloud commands without a counterpart in a workload: why each is left out, with its flags.

#include <string>
#include <string_view>
#include <vector>

#include "operate/import/flags.h"

namespace systole {

// Whether the command begins with these whole words: "create-x" is not "create".
bool begins(std::string_view command, std::string_view words);
// The reason for "container clusters get-credentials", given without flags. Empty: not in the list.
std::string_view why_told(std::string_view command);

// `gcloud container clusters create` beside a line that starts a program or creates its nodes: render --on gke creates
// a cluster.
void tell_cluster(const std::vector<ParsedFlag>& seen, Draft& draft);
// `gcloud billing budgets create`.
void tell_budget(const std::vector<ParsedFlag>& seen, const std::string& line, Draft& draft);

}  // namespace systole
