#pragma once
// Where tools/xla-plugins puts plugins, and what each wants in its environment before it is loaded.
//
//   FOLDER/tpu/libtpu/libtpu.so                               FOLDER/tpu/installed.txt: the packages with their hashes
//   FOLDER/gpu/jax_plugins/xla_cuda13/xla_cuda_plugin.so      FOLDER/gpu/nvidia/cu13: ptxas and libdevice, found from
//   there FOLDER/cpu/…                                              for tests
//
// FOLDER is what the user says, else $SYSTOLE_XLA_PLUGINS, else $XDG_DATA_HOME/systole/xla-plugins, else
// $HOME/.local/share/systole/xla-plugins.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ground/base/result.h"

namespace systole::pjrt {

struct PluginPlace {
  std::string name;     // "tpu", "gpu", "cpu"
  std::string path;     // of the library
  std::string version;  // "libtpu 0.0.51", of installed.txt; "" where that is not there
  // To set before loading, where the variable is not set yet: `deviceless` where no device of this machine's is wanted.
  std::vector<std::pair<std::string, std::string>> environment, deviceless;
};

// The names that have a place, in order: "tpu", "gpu", then the tests' CPU plugins.
std::vector<std::string> plugin_names();

// `said`: the user's option, may be empty.
std::string plugins_folder(const std::string& said = "");

// Errors: unsupported: it is not there, with the command that gets it; invalid: no plugin has this name.
Result<PluginPlace> find_plugin(const std::string& name, const std::string& folder);

// Sets what is not set. REQUIRES: no other thread reads the environment meanwhile.
void prepare_environment(const PluginPlace& place, bool deviceless);

}  // namespace systole::pjrt
