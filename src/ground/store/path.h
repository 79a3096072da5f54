#pragma once
// Paths of a store: relative, '/'-separated; no name is empty, "." or "..". They may come from files (a manifest), so a
// bad one is an Error and never reaches the system.

#include <string>
#include <string_view>
#include <vector>

#include "ground/base/result.h"

namespace systole {

// The names in a file's path. Errors: invalid.
Result<std::vector<std::string>> split_file_path(std::string_view path);
Status check_file_path(std::string_view path);
// The same for a folder; "" is the root, and one trailing '/' is allowed.
Result<std::vector<std::string>> split_dir_path(std::string_view path);
Status check_dir_path(std::string_view path);

std::string_view parent_of(std::string_view path);  // "a/b" of "a/b/c", "" of "c"

}  // namespace systole
