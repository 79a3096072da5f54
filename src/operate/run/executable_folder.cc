#include "operate/run/executable_folder.h"

#include <filesystem>

#include "ground/store/content_cache.h"

namespace systole {
namespace {
constexpr Bytes kKept(std::int64_t{4} << 30);
}  // namespace

std::optional<std::string> ExecutableFolder::find(const std::string& key) {
  if (folder_.empty()) return std::nullopt;
  const Result<std::unique_ptr<Store>> store = open_posix_store(folder_);
  return store.ok() ? ContentCache(**store, kKept, "").find(key) : std::nullopt;
}

void ExecutableFolder::keep(const std::string& key, std::string_view bytes) {
  if (folder_.empty()) return;
  std::error_code ignored;
  std::filesystem::create_directories(folder_, ignored);
  const Result<std::unique_ptr<Store>> store = open_posix_store(folder_);
  if (store.ok()) (void)ContentCache(**store, kKept, "").keep(key, bytes);
}

std::string executable_folder(const char* xdg_cache_home, const char* home) {
  if (xdg_cache_home != nullptr && *xdg_cache_home != '\0') return std::string(xdg_cache_home) + "/systole/xla";
  if (home != nullptr && *home != '\0') return std::string(home) + "/.cache/systole/xla";
  return "";
}

}  // namespace systole
