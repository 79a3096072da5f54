#pragma once
// The flags of gcloud's commands: what each takes, and why a line that makes no machines leaves it out.

#include <span>
#include <string_view>
#include <vector>

#include "operate/import/flags.h"

namespace systole {

std::span<const Flag> gcloud_flags();
// Whether it says something of the machines that a line makes, for which no other key is.
bool is_of_machines(const SeenFlag& flag);
// The one that counts: gcloud takes the last of a name. Null: there is none.
const SeenFlag* last_flag(const std::vector<SeenFlag>& seen, std::string_view name);

}  // namespace systole
