// `systole calibrate`: measures this machine and writes its entry in the user's catalog, which plans then use.

#include "execute/calibrate/calibrate.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "ground/base/counted.h"
#include "operate/cli/command.h"
#include "operate/run/plan_run.h"
#include "operate/run/served_model.h"

namespace systole::cli {
namespace {

struct CalibrateCommandOptions {
  bool quick = false;
  bool no_disk = false;
  std::string out;
  std::string pin_isa;
  std::int64_t threads = 0;
};

std::string default_folder() {
  std::string folder = user_catalog_folder(std::getenv("XDG_CONFIG_HOME"), std::getenv("HOME"));
  if (folder.empty()) {
    fail(
        error(ErrorKind::not_found, "there is no place for the user's catalog: neither XDG_CONFIG_HOME nor HOME is set")
            .hinted("--out FOLDER"));
  }
  return folder;
}

ExitCode calibrate_machine(const CalibrateCommandOptions& options, Context& context) {
  check_threads(options.threads, "--threads").value();
  const std::string folder = options.out.empty() ? default_folder() : options.out;
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) {
    fail(error(ErrorKind::io, "cannot make the folder '{}': {}", folder, failed.message())
             .hinted("--out: a folder that may be written"));
  }
  pin_isa("cpu", options.pin_isa).value();
  ResourcesSpec resources;
  if (options.threads > 0) resources.threads = options.threads;
  const Machine machine = open_machine("cpu", resources, context.clock).value();
  context.out.notice(fmt::format("{}; {}", machine.identity, options.quick ? "about 30 s" : "about two minutes"));
  CalibrateOptions how;
  how.quick = options.quick;
  const Machine serving = open_machine("cpu", resources, context.clock, serving_use("cpu")).value();
  how.serving = serving.device.get();
  if (!options.no_disk) how.disk_folder = ".";
  how.told = [&context](const CalibratedFact& fact) {
    const std::string spread = fact.spread > 0 ? fmt::format("±{:.0f}%", 50 * fact.spread) : "";
    context.out.prose(fmt::format("{:<30}{:>14}  {:<6}{}", fact.key, value_text(fact), spread, fact.how));
  };
  const std::vector<CalibratedFact> facts = calibrate(*machine.device, context.clock, how).value();
  const std::unique_ptr<Store> store = open_posix_store(folder).value();
  const std::string date = context.clock.timestamp().substr(0, 10);
  const int threads = machine.device->target().threads;
  std::string entry = calibrated_entry(threads);
  if (!options.pin_isa.empty()) entry += "-" + options.pin_isa;
  std::ranges::replace(entry, '/', '-');  // "avx2/avx512": our kernels and the library's
  const std::string file = entry + ".yaml";
  write_whole(*store, file, catalog_text(facts, entry, machine.identity, date)).value();
  Node list = Node::map();
  for (const CalibratedFact& fact : facts)
    list.set(fact.key, Node::map({{"value", fact.value}, {"unit", name_of(fact.unit)}, {"spread", fact.spread}}));
  context.out.json(Node::map({{"file", folder + "/" + file}, {"machine", machine.identity}, {"facts", list}}));
  context.out.notice(fmt::format(
      "written: {}/{}{}", folder, file,
      !options.out.empty() ? ""
                           : fmt::format("; plans for {}{} read it from now on", counted(threads, "thread"),
                                         options.pin_isa.empty() ? "" : " and --pin-isa " + options.pin_isa)));
  return ExitCode::done;
}

}  // namespace

void add_calibrate(Subcommand app, Context& context) {
  auto options = std::make_shared<CalibrateCommandOptions>();
  Subcommand command = add_command(app, "calibrate", "measure this machine, so that plans predict it", options, context,
                                   calibrate_machine);
  command.add_flag("--quick", options->quick, "half a minute instead of two; larger spreads");
  command.add_flag("--no-disk", options->no_disk, "leave the disk of the working folder out");
  command
      .add_option("--threads", options->threads,
                  "threads that runs will use, for each number an entry of its own; without: all there are")
      .check(at_least(1));
  command.add_option("--pin-isa", options->pin_isa,
                     "measure what runs take that are held to these instructions: avx2, avx512, avx512-bf16, amx");
  command.add_option("--out", options->out, "the catalog's folder; without: the user's");
}

}  // namespace systole::cli
