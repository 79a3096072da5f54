#pragma once
// Lines of gcloud that make machines: as resources, and the rest as `gcloud`.

#include <map>
#include <span>
#include <string>
#include <vector>

#include "operate/import/flags.h"

namespace systole {

// Other options of the command, by name; one that is said several times has a line each.
using GcloudOptions = std::map<std::string, FlagValue>;
void keep_option(const SeenFlag& flag, GcloudOptions& options);

// `names`: of what is made; `from`: the command's words.
void read_gcloud_machines(GcloudSpec::Create create, std::span<const ShellWord> names, const std::string& from,
                          const std::vector<SeenFlag>& seen, Draft& draft);
// --num-nodes=2 --min-nodes=1 --max-nodes=4: as many as it may have. What a range cannot say stays an option.
void read_node_counts(const std::vector<SeenFlag>& seen, GcloudOptions& options, Draft& draft);
// On which terms the machines are had.
void read_terms(const std::vector<SeenFlag>& seen, Draft& draft);

// Their accelerators in the catalog's words; empty: they have none, or nobody knows them.
std::string gcloud_accelerators(const std::string& machine, const std::string& accelerator, const Draft& draft);

}  // namespace systole
