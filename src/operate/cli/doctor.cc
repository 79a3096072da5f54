// `systole doctor [WORKLOAD]` (`doctor xla` is in doctor_xla.cc, `doctor devices` in doctor_devices.cc): examines this
// machine, with a remedy for each problem.

#include "operate/doctor/doctor.h"

#include "operate/cli/findings.h"
#include "operate/cli/workload_options.h"
#include "operate/run/machine_facts.h"

namespace systole::cli {
namespace {

struct DoctorOptions {
  std::string workload;
};

ExitCode look(const DoctorOptions& options, Context& context) {
  Examined examined;
  if (!options.workload.empty())
    examined.threads = load_workload(options.workload, WorkloadOptions()).value().resources.threads;
  const std::unique_ptr<System> system = this_system();
  examined.machine = read_facts({}, *system);
  examined.libraries = library_facts();
  examined.calibration = calibration_facts(context.clock);
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
  // For `doctor xla` the command line calls both, the inner one first.
  command.otherwise([options, &context] {
    context.out.set_command("doctor");
    context.exit = look(*options, context);
  });
  command.add_option("workload", options->workload, "judge for this workload: the threads it asks for");
  add_doctor_xla(command, context);
  add_doctor_devices(command, context);
}

}  // namespace systole::cli
