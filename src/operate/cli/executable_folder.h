#pragma once
// Where XLA's executables are kept from run to run: a ContentCache under $XDG_CACHE_HOME/systole/xla, else
// $HOME/.cache/systole/xla.

#include <string>

#include "execute/backends/xla/xla.h"

namespace systole::cli {

class ExecutableFolder : public ExecutableCache {
 public:
  // `folder` is made when something is kept in it; "": nothing ever is.
  explicit ExecutableFolder(std::string folder) : folder_(std::move(folder)) {}
  // What cannot be read or written is as if it were not there: then it is compiled.
  std::optional<std::string> find(const std::string& key) override;
  void keep(const std::string& key, std::string_view bytes) override;

 private:
  std::string folder_;
};

// The user's, "" where the environment says none. Null: a variable that is not set.
std::string executable_folder(const char* xdg_cache_home, const char* home);

}  // namespace systole::cli
