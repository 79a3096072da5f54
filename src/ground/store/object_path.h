#pragma once
// Checks of object paths (object_store.h).

#include <string_view>

#include "ground/base/result.h"
#include "ground/store/object_store.h"

namespace systole {

// The prefix of last names that are reserved for the stores.
inline constexpr std::string_view kOwnName = ".systole-";
bool is_own_name(std::string_view leaf);

// Errors: invalid.
Status check_object_path(std::string_view path);
// Leaves those out whose paths are none, and counts what others keep there.
void keep_paths(ObjectList& list);
// For a folder: "", or a path with or without a '/' at its end. Returns it without. Errors: invalid.
Result<std::string_view> folder_of_prefix(std::string_view prefix);

}  // namespace systole
