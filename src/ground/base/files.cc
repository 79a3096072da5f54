#include "ground/base/files.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "ground/base/os_error.h"

namespace systole {

namespace fs = std::filesystem;

bool path_exists(const fs::path& path) {
  std::error_code failed;
  return fs::exists(path, failed);
}

bool is_folder(const fs::path& path) {
  std::error_code failed;
  return fs::is_directory(path, failed);
}

bool is_file(const fs::path& path) {
  std::error_code failed;
  return fs::is_regular_file(path, failed);
}

Result<std::string> working_folder() {
  std::error_code failed;
  const fs::path path = fs::current_path(failed);
  if (!failed) return path.string();
  return error(ErrorKind::not_found, "the folder this command runs in is gone: {}", failed.message())
      .hinted("go to one that is there: cd ~");
}

Result<std::string> absolute_path(const fs::path& path) {
  if (path.is_absolute()) return path.lexically_normal().string();
  return (fs::path(TRY(working_folder())) / path).lexically_normal().string();
}

Result<std::string> path_without_links(const fs::path& path) {
  const std::string absolute = TRY(absolute_path(path));
  std::error_code failed;
  const fs::path plain = fs::weakly_canonical(absolute, failed);
  if (failed) return os_read_error(failed.value(), "look for the links in", absolute);
  return plain.string();
}

std::string temporary_folder() {
  const char* given = std::getenv("TMPDIR");
  return given != nullptr && is_folder(given) ? given : "/tmp";
}

Status make_folders(const fs::path& path) {
  if (path.empty()) return {};
  std::error_code failed;
  fs::create_directories(path, failed);
  if (failed) {
    Error refused = os_error(failed.value(), "make the folder", path.string());
    if (refused.kind == ErrorKind::not_found)
      refused.kind = ErrorKind::io;  // all parents exist: the file system refuses
    return refused;
  }
  if (is_folder(path)) return {};
  return os_error(ENOTDIR, "make the folder", path.string());
}

std::vector<fs::path> paths_in(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed))
    paths.push_back(at->path());
  std::ranges::sort(paths);
  return paths;
}

Result<std::vector<fs::path>> files_below(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code failed;
  for (fs::recursive_directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed))
    if (is_file(at->path())) files.push_back(at->path());
  if (failed) return os_read_error(failed.value(), "list all files of", folder.string());
  std::ranges::sort(files);
  return files;
}

}  // namespace systole
