#include "operate/cli/plugin_trial.h"

#include <CLI/CLI.hpp>

namespace systole::cli {

void add_plugin_trial(CLI::App& command, PluginTrial& trial) {
  command.add_option("--folder", trial.folder,
                     "where the plugins are; without: $SYSTOLE_XLA_PLUGINS, or the user's folder");
  command.add_option("--timeout", trial.timeout, "seconds that each plugin may take")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command.add_option("--probe", trial.probe, "try one plugin in this process")->group("");
}

}  // namespace systole::cli
