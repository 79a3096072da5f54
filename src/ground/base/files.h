#pragma once
// What std::filesystem throws, as answers and errors: a folder without permission, a working folder that is gone and a
// name that is too long are what people run into. tools/check-files holds the rest of src/ to it.

#include <filesystem>
#include <string>
#include <vector>

#include "ground/base/result.h"

namespace systole {

// False also where it cannot be looked at.
bool path_exists(const std::filesystem::path& path);
bool is_folder(const std::filesystem::path& path);
bool is_file(const std::filesystem::path& path);  // a regular one

// Where this process is. Errors: not_found (the folder is gone).
Result<std::string> working_folder();
// Absolute and normal ("/a/b" of "b/./c/.." in /a). Errors: as working_folder, for a relative one.
Result<std::string> absolute_path(const std::filesystem::path& path);
std::string temporary_folder();  // $TMPDIR, or /tmp

// With those above it; fine if it is there. Errors: as os_error.
Status make_folders(const std::filesystem::path& path);
// What lies in a folder, or in all below it, sorted; links are not followed. Empty where it cannot be read.
std::vector<std::filesystem::path> paths_in(const std::filesystem::path& folder);
std::vector<std::filesystem::path> files_below(const std::filesystem::path& folder);

}  // namespace systole
