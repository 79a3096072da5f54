// `systole doctor [WORKLOAD]` (doctor_xla.cc has `doctor xla`, doctor_devices.cc `doctor devices`): looks at this
// machine, and says of each thing that is not as it should be what to do.

#include "operate/doctor/doctor.h"

#include <cstdlib>

#include "operate/cli/findings.h"
#include "operate/cli/workload_options.h"
#ifdef SYSTOLE_HAS_CPU
#include "execute/backends/cpu/cpu.h"
#endif

namespace systole::cli {
namespace {

struct DoctorOptions {
  std::string workload;
};

std::vector<LibraryFacts> libraries() {
#ifdef SYSTOLE_HAS_CPU
  const Status loaded = load_cpu_library();
  return {{cpu_library(), loaded.ok() ? std::optional<Error>() : loaded.error()}};
#else
  return {};
#endif
}

std::optional<BytesPerSecond> rate_of(const CatalogEntry& entry, const char* key) {
  const Result<BytesPerSecond> rate = entry.bytes_per_second(key);
  return rate.ok() ? std::optional(*rate) : std::nullopt;
}

// What plans would take for this machine. Nothing about it where there is no device: that is told as instructions.
CalibrationFacts calibration(Clock& clock) {
  CalibrationFacts facts;
  const Result<Machine> machine = open_machine("cpu", {}, clock);
  if (!machine.ok()) {
    facts.stale = machine.error();
    return facts;
  }
  facts.entry = machine->catalog_entry;
  facts.date = machine->catalog_date;
  facts.calibrated = machine->speed.calibrated;
  facts.stale = machine->stale;
  const Result<Catalog> catalog = read_catalog();
  const Result<const CatalogEntry*> entry =
      catalog.ok() ? catalog->find(facts.entry) : Result<const CatalogEntry*>(catalog.error());
  if (facts.calibrated && entry.ok()) {
    facts.disk_write = rate_of(**entry, "disk.write");
    facts.disk_read = rate_of(**entry, "disk.read");
  }
  return facts;
}

ExitCode look(const DoctorOptions& options, Context& context) {
  Examined examined;
  if (!options.workload.empty())
    examined.threads = load_workload(options.workload, WorkloadOptions()).value().resources.threads;
  const std::unique_ptr<System> system = this_system();
  examined.machine = read_facts({}, *system);
  examined.libraries = libraries();
  examined.calibration = calibration(context.clock);
  examined.today = context.clock.timestamp().substr(0, 10);
  return print_findings(examine(examined), context);
}

Ink ink_of(Verdict verdict) {
  return verdict == Verdict::ok ? Ink::green : verdict == Verdict::warn ? Ink::yellow : Ink::red;
}

}  // namespace

ExitCode print_findings(const std::vector<Finding>& findings, Context& context) {
  int count[3] = {};
  Node list = Node::sequence();
  std::string text;
  for (const Finding& finding : findings) {
    ++count[static_cast<int>(finding.verdict)];
    const char* verdict = name_of(finding.verdict);
    text += fmt::format("{}{:<{}}  {:<13}  {}\n", context.out.ink(ink_of(finding.verdict), verdict), "",
                        4 - std::string_view(verdict).size(), finding.name, finding.text);
    if (!finding.hint.empty()) text += fmt::format("        hint: {}\n", finding.hint);
    list.push(
        Node::map({{"name", finding.name}, {"verdict", verdict}, {"text", finding.text}, {"hint", finding.hint}}));
  }
  context.out.prose(text + fmt::format("{} ok, {} to look at, {} wrong", count[0], count[1], count[2]));
  context.out.json(
      Node::map({{"ok", count[0]}, {"warn", count[1]}, {"fail", count[2]}, {"findings", std::move(list)}}));
  return count[2] == 0 ? ExitCode::done : ExitCode::no;
}

void add_doctor(Subcommand app, Context& context) {
  auto options = std::make_shared<DoctorOptions>();
  Subcommand command = add_command(app, "doctor", "look at this machine: what is not well, and what to do about it",
                                   options, context, look);
  // Of `doctor xla` the command line calls both, the inner one first.
  command.otherwise([options, &context] {
    context.out.set_command("doctor");
    context.exit = look(*options, context);
  });
  command.add_option("workload", options->workload, "judge for this workload: the threads it asks for");
  add_doctor_xla(command, context);
  add_doctor_devices(command, context);
}

}  // namespace systole::cli
