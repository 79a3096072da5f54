// `systole doctor devices`: which chips XLA's plugins see from a process of this machine, and which each rank of a run
// would get.

#include "operate/doctor/devices.h"

#include "ground/pjrt/places.h"
#include "operate/cli/findings.h"
#include "operate/cli/plugin_trial.h"
#include "operate/cli/session.h"
#include "operate/cli/xla_machine.h"
#include "operate/cli/xla_probe.h"

namespace systole::cli {
namespace {

struct DoctorDevicesOptions {
  std::string device, chip;
  std::int64_t ranks = 1;
  PluginTrial trial;
};

RuntimeFacts facts_of(const std::string& device, const DoctorDevicesOptions& options, const Catalog& catalog) {
  const std::string plugin = device == "xla-cpu" ? "cpu" : device, folder = pjrt::plugins_folder(options.trial.folder);
  RuntimeFacts runtime;
  runtime.device = device;
  const Result<pjrt::PluginPlace> place = pjrt::find_plugin(plugin, folder);
  runtime.there = place.ok();
  runtime.get = place.ok() ? "" : place.error().hint;
  if (!runtime.there) return runtime;
  const Result<SeenDevices> seen =
      see_devices(plugin, folder, static_cast<int>(options.ranks), Seconds(options.trial.timeout));
  if (!seen.ok()) {
    runtime.problem = seen.error().message;
    return runtime;
  }
  for (const SeenDevice& one : seen->devices) {
    const Result<std::string> entry = catalog_entry_of_xla(device, one.kind, catalog);
    runtime.devices.push_back({one.kind, entry.ok() && device != "xla-cpu" ? *entry : "", one.memory});
  }
  return runtime;
}

ExitCode look(const DoctorDevicesOptions& options, Context& context) {
  if (!options.trial.probe.empty()) {
    Node document =
        seen_here(options.trial.probe, pjrt::plugins_folder(options.trial.folder), static_cast<int>(options.ranks));
    context.out.data(to_json(document));
    context.out.json(std::move(document));
    return ExitCode::done;
  }
  const Catalog catalog = read_catalog().value();
  if (!options.chip.empty()) catalog.find(options.chip).value();
  DevicesFacts facts;
  facts.ranks = options.ranks;
  facts.wanted = options.chip;
  facts.asked = !options.device.empty();
  const std::vector<std::string> all =
      facts.asked ? std::vector<std::string>{options.device} : std::vector<std::string>{"tpu", "gpu"};
  for (const std::string& device : all) facts.runtimes.push_back(facts_of(device, options, catalog));
  return print_findings(examine_devices(facts), context);
}

}  // namespace

void add_doctor_devices(Subcommand doctor, Context& context) {
  auto options = std::make_shared<DoctorDevicesOptions>();
  Subcommand command = add_command(doctor, "devices", "which chips a run would get: none, one, of the wrong kind",
                                   options, context, look);
  command.add_option("--device", options->device, "of this kind alone; without: tpu and gpu")
      .check(one_of({"gpu", "tpu", "xla-cpu"}));
  command.add_option("--ranks", options->ranks, "so many are to have one each")
      .check(at_least(1))
      .capture_default_str();
  command.add_option("--chip", options->chip, "the catalog's entry that each is to have, as v5e or h100");
  add_plugin_trial(command, options->trial);
}

}  // namespace systole::cli
