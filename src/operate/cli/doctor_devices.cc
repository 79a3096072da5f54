// `systole doctor devices`: the chips that XLA's plugins see from a process of this machine, and the one that each rank
// of a run would get.

#include "operate/doctor/devices.h"

#include "ground/pjrt/places.h"
#include "operate/cli/findings.h"
#include "operate/cli/plugin_trial.h"
#include "operate/run/machine.h"
#include "operate/run/plugin_facts.h"
#include "operate/run/xla_probe.h"

namespace systole::cli {
namespace {

struct DoctorDevicesOptions {
  std::string device, chip;
  std::int64_t ranks = 1;
  PluginTrial trial;
};

ExitCode look(const DoctorDevicesOptions& options, Context& context) {
  const std::string folder = pjrt::plugins_folder(options.trial.folder);
  if (!options.trial.probe.empty()) {
    Node document = devices_of_plugin(options.trial.probe, folder, static_cast<int>(options.ranks));
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
  for (const std::string& device : all)
    facts.runtimes.push_back(runtime_facts(device, options.ranks, folder, Seconds(options.trial.timeout), catalog));
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
