#pragma once
// Wrappers of std::filesystem that return answers and errors instead of throwing: users do have folders without
// permission, deleted working folders and overlong names. tools/check-files makes the rest of src/ use them.

#include <filesystem>
#include <string>
#include <vector>

#include "ground/base/result.h"

namespace systole {

// False also if access is denied.
bool path_exists(const std::filesystem::path& path);
bool is_folder(const std::filesystem::path& path);
bool is_file(const std::filesystem::path& path);  // a regular one

// The working folder of this process. Errors: not_found (it was deleted).
Result<std::string> working_folder();
// Absolute and normalized ("/a/b" for "b/./c/.." in /a). Errors: as working_folder, for a relative path.
Result<std::string> absolute_path(const std::filesystem::path& path);
// The same without links, as far as it is there. Errors: those too; io, a link leads nowhere but to itself.
Result<std::string> path_without_links(const std::filesystem::path& path);
std::string temporary_folder();  // $TMPDIR, or /tmp

// Creates the folder and its parents; fine if it exists. Errors: as os_error.
Status make_folders(const std::filesystem::path& path);
// The entries of a folder; sorted. Empty if unreadable.
std::vector<std::filesystem::path> paths_in(const std::filesystem::path& folder);
// The files of a folder and of all folders below it; sorted; links to folders are not followed. Errors: as os_read_error,
// if it or one below it cannot be read.
Result<std::vector<std::filesystem::path>> files_below(const std::filesystem::path& folder);

}  // namespace systole
