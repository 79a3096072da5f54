#pragma once
// Where users name files: paths as a store takes them, and hints for names that no file has.

#include <string>
#include <string_view>

#include "ground/base/result.h"

namespace systole {

// A file or folder of this machine as a store at "/" names it: "a/b" of "/a/b" and of "/a/b/"; "" of "/".
// Errors: those of absolute_path.
Result<std::string> below_root(const std::string& path);

// The error for a folder that is named where files are; its hint is a pattern of the files that it has, and where it has
// none of those that end in `ending`; of any files if that is empty.
Error folder_for_files(const std::string& folder, std::string_view ending = ".txt");

// A hint if `pattern` has brackets, to append to another hint; else empty.
std::string brackets_hint(const std::string& pattern);

}  // namespace systole
