#include "operate/cli/plugin_trial.h"

namespace systole::cli {

void add_plugin_trial(Subcommand command, PluginTrial& trial) {
  command.add_option("--folder", trial.folder,
                     "where the plugins are; without: $SYSTOLE_XLA_PLUGINS, or the user's folder");
  command.add_option("--timeout", trial.timeout, "seconds that each plugin may take")
      .check(positive())
      .capture_default_str();
  command.add_option("--probe", trial.probe, "try one plugin in this process").hidden();
}

}  // namespace systole::cli
