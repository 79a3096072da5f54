#include "operate/run/fresh_run.h"

#include <unistd.h>

#include <filesystem>

#include "describe/spec/run_name.h"
#include "ground/base/files.h"
#include "operate/observe/run_files.h"
#include "operate/render/quote.h"
#include "operate/run/run_places.h"

namespace systole {

std::string fresh_folder(const std::string& name) {
  const Result<std::unique_ptr<Store>> runs = open_posix_store(kRunsFolder);
  return std::string(kRunsFolder) + "/" + next_run_name(runs.ok() ? runs->get() : nullptr, name);
}

ReservedRunName::ReservedRunName(const std::string& name) : folder_(fresh_folder(name)) {
  std::error_code failed;
  std::filesystem::create_directories(kRunsFolder, failed);
  constexpr int kTries = 1000;  // claim_folder reports what cannot be made or listed
  for (int tries = 0; tries < kTries && !failed; ++tries) {
    folder_ = fresh_folder(name);
    if (std::filesystem::create_directory(folder_, failed)) break;
  }
}

ReservedRunName::~ReservedRunName() {
  ::rmdir(folder_.c_str());  // removes only an empty one
  ::rmdir(kRunsFolder);
}

Status check_names_a_run(const std::string& folder) {
  if (folder.empty()) return Done{};
  std::filesystem::path path = TRY(absolute_path(folder)), said = std::filesystem::path(folder).lexically_normal();
  for (std::filesystem::path* each : {&path, &said})
    if (!each->has_filename()) *each = each->parent_path();
  const std::string name = path.filename().string();
  const auto at_sign = taken_for_checkpoint(name);
  if (!at_sign || path_exists(folder + "/" + RunFiles::plan)) return Done{};
  if (said.filename() != path.filename()) said = path;  // "." names no folder
  return error(ErrorKind::invalid, "--folder: '{}' cannot name a run: {}", name, at_sign->why)
      .hinted("--folder " + shell_word(said.replace_filename(at_sign->instead).string()));
}

}  // namespace systole
