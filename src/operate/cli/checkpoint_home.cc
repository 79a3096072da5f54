#include "operate/cli/checkpoint_home.h"

#include <filesystem>

#include "ground/base/files.h"

namespace systole::cli {

Result<CheckpointHome> checkpoint_home(Store& run, const std::string& path, const CheckpointSpec& spec, Absent absent) {
  namespace fs = std::filesystem;
  std::string inside = fs::path(spec.folder).lexically_normal().string();
  while (inside.size() > 1 && inside.ends_with('/')) inside.pop_back();
  if (!inside.starts_with('/') && inside != ".." && !inside.starts_with("../"))
    return CheckpointHome{path, nullptr, &run, inside == "." ? "" : inside};
  CheckpointHome home;
  home.root = (fs::path(path) / inside).lexically_normal().string();
  if (absent == Absent::is_made) TRY(make_folders(home.root));
  if (!is_folder(home.root)) {
    return error(ErrorKind::not_found, "checkpoint.folder: there is no folder '{}'", home.root)
        .hinted("mount its disk again, or copy the folder back");
  }
  home.own = TRY(open_posix_store(home.root));
  home.store = home.own.get();
  return home;
}

}  // namespace systole::cli
