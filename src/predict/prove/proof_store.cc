#include "predict/prove/proof_store.h"

#include <cstdlib>
#include <filesystem>

#include "ground/base/os_error.h"
#include "predict/prove/proof_cache.h"

namespace systole::prove {

Result<std::unique_ptr<Store>> open_proof_store(std::string& folder) {
  folder = cache_folder(std::getenv("XDG_CACHE_HOME"), std::getenv("HOME"));
  if (folder.empty()) return std::unique_ptr<Store>();
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  if (code) return os_error(code.value(), "make the folder", folder);
  return open_posix_store(folder);
}

}  // namespace systole::prove
