#pragma once
// The options of commands that try plugins, each in a child process: this program with --probe.

#include <string>

#include "operate/cli/options.h"

namespace systole::cli {

struct PluginTrial {
  std::string folder;   // empty: of the environment, or the user's
  std::string probe;    // in the child: the plugin to try
  double timeout = 60;  // seconds
};
void add_plugin_trial(Subcommand command, PluginTrial& trial);

}  // namespace systole::cli
