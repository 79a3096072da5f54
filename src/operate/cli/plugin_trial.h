#pragma once
// Options of commands that try plugins, each in a child process: this program with --probe.

#include <string>

#include "operate/cli/options.h"

namespace systole::cli {

struct PluginTrial {
  std::string folder;   // empty: from the environment, or the user's default
  std::string probe;    // in the child: the plugin to try
  double timeout = 60;  // seconds
};
void add_plugin_trial(Subcommand command, PluginTrial& trial);

}  // namespace systole::cli
