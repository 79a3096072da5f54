#pragma once
// gcloud lines that create machines: converted to resources, and the rest to a `gcloud` section.

#include <map>
#include <span>
#include <string>
#include <vector>

#include "operate/import/flags.h"

namespace systole {

// Other options of the command, by name; a repeated option has a line per value.
using GcloudOptions = std::map<std::string, FlagValue>;
void keep_option(const ParsedFlag& flag, GcloudOptions& options);

// `names`: of the created resources; `from`: the command's words.
void read_gcloud_machines(GcloudSpec::Create create, std::span<const ShellWord> names, const std::string& from,
                          const std::vector<ParsedFlag>& seen, Draft& draft);
// --num-nodes=2 --min-nodes=1 --max-nodes=4: becomes a range of nodes. What a range cannot express stays an option.
void read_node_counts(const std::vector<ParsedFlag>& seen, GcloudOptions& options, Draft& draft);
// Provisioning terms of the machines.
void read_terms(const std::vector<ParsedFlag>& seen, Draft& draft);

// Their accelerators by the catalog's names; empty: none, or unknown ones.
std::string gcloud_accelerators(const std::string& machine, const std::string& accelerator, const Draft& draft);

}  // namespace systole
