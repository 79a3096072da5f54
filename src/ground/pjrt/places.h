#pragma once
// The locations where tools/xla-plugins installs plugins, and the environment each needs before it is loaded.
//
//   FOLDER/tpu/libtpu/libtpu.so                             FOLDER/tpu/installed.txt lists the packages with hashes
//   FOLDER/gpu/jax_plugins/xla_cuda13/xla_cuda_plugin.so    finds ptxas and libdevice in FOLDER/gpu/nvidia/cu13
//   FOLDER/cpu/…                                            for tests
//
// FOLDER is the user's option, else $SYSTOLE_XLA_PLUGINS, else $XDG_DATA_HOME/systole/xla-plugins, else
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
  std::string version;  // "libtpu 0.0.51", from installed.txt; "" if that is absent
  // Variables to set before loading, unless already set; `deviceless`: also, if no device of this machine is used.
  std::vector<std::pair<std::string, std::string>> environment, deviceless;
};

// All known names, in order: "tpu", "gpu", then the tests' CPU plugins.
std::vector<std::string> plugin_names();

// `said`: the user's option; may be empty.
std::string plugins_folder(const std::string& said = "");

// Errors: unsupported: not installed, with the install command; invalid: no such plugin.
Result<PluginPlace> find_plugin(const std::string& name, const std::string& folder);

// Sets the variables that are unset. REQUIRES: no other thread reads the environment meanwhile.
void prepare_environment(const PluginPlace& place, bool deviceless);

}  // namespace systole::pjrt
