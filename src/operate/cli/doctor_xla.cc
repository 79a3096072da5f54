// `systole doctor xla`: which XLA compilers are installed, whether they work, and the command that installs one. Each
// is tried in a child process, this program with --probe, so a plugin that aborts or hangs becomes a line of the table.

#include "operate/doctor/xla.h"

#include "ground/pjrt/places.h"
#include "operate/cli/findings.h"
#include "operate/cli/plugin_trial.h"
#include "operate/run/plugin_facts.h"

namespace systole::cli {
namespace {

ExitCode look(const PluginTrial& options, Context& context) {
  const std::string folder = pjrt::plugins_folder(options.folder);
  if (!options.probe.empty()) {
    Node document = probe_compiler(options.probe, folder, context.clock);
    context.out.data(to_json(document));
    context.out.json(std::move(document));
    return ExitCode::done;
  }
  return print_findings(examine_xla(xla_facts(folder, Seconds(options.timeout))), context);
}

}  // namespace

void add_doctor_xla(Subcommand doctor, Context& context) {
  auto options = std::make_shared<PluginTrial>();
  Subcommand command = add_command(doctor, "xla", "XLA's compilers: which are there, do they work, how to get them",
                                   options, context, look);
  add_plugin_trial(command, *options);
}

}  // namespace systole::cli
