#pragma once
// The flags of gcloud's commands: their values, and why a line that creates no machines leaves them out.

#include <span>
#include <string_view>
#include <vector>

#include "operate/import/flags.h"

namespace systole {

std::span<const Flag> gcloud_flags();
// Flags about created machines that have no other key.
std::span<const Flag> gcloud_machine_flags();
bool is_of_machines(const ParsedFlag& flag);
// The effective flag: gcloud uses the last of a name, or of its "no-" form. Null: absent or negated.
const ParsedFlag* last_flag(const std::vector<ParsedFlag>& seen, std::string_view name);

}  // namespace systole
