#pragma once
// The cache of XLA executables across runs: a ContentCache under $XDG_CACHE_HOME/systole/xla, otherwise
// $HOME/.cache/systole/xla.

#include <string>

#include "execute/backends/xla/xla.h"

namespace systole {

class ExecutableFolder : public ExecutableCache {
 public:
  // `folder` is created at the first write; "": nothing is kept.
  explicit ExecutableFolder(std::string folder) : folder_(std::move(folder)) {}
  // Unreadable entries and failed writes count as absent; the function is then compiled.
  std::optional<std::string> find(const std::string& key) override;
  void keep(const std::string& key, std::string_view bytes) override;

 private:
  std::string folder_;
};

// The user's folder; "" if the environment has none. Null arguments: unset variables.
std::string executable_folder(const char* xdg_cache_home, const char* home);

}  // namespace systole
