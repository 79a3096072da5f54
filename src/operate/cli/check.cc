// `systole check WORKLOAD`: all errors of a workload at once, what it needs that this machine lacks, and legal settings
// that are probably mistakes. For a workload with keys of a cluster also what render would refuse, and quotas above a
// new project's default. Builds the whole Program on a device that runs nothing, and checks that text files exist;
// reads none of them and allocates no arena.

#include "ground/base/counted.h"
#include "ground/process/spawn.h"
#include "operate/cli/workload_options.h"
#include "operate/run/check_here.h"

namespace systole::cli {
namespace {

struct CheckOptions {
  WorkloadArguments workload;
};

// Reports each on stderr; returns them for --json.
Node tell_quotas(const std::vector<QuotaNote>& notes, Context& context) {
  Node all = Node::sequence();
  for (const QuotaNote& note : notes) {
    context.out.note("quota: " + note.text, note.hint);
    all.push(Node::map({{"text", note.text}, {"hint", note.hint}}));
  }
  return all;
}

// Reports lint on stderr; returns it for --json.
Node tell_warnings(const std::vector<Lint>& found, Context& context) {
  Node all = Node::sequence();
  for (const Lint& one : found) {
    context.out.warning(fmt::format("{}: {}", one.key, one.text), one.hint);
    all.push(Node::map({{"key", one.key}, {"text", one.text}, {"hint", one.hint}}));
  }
  return all;
}

ExitCode check_serving(const WorkloadArguments& arguments, const LoadedWorkload& loaded, Context& context) {
  const CheckedWorkload checked = check_server(arguments, loaded, context.clock).value();
  const Node warnings = tell_warnings(checked.warnings, context);
  const Node quotas = tell_quotas(checked.quotas, context);
  const EngineOptions& engine = checked.engine;
  context.out.prose(fmt::format("{}: OK: {} serve {} of {} at once\n", arguments.path,
                                counted(checked.parameters, "parameter"), counted(engine.slots, "sequence"),
                                counted(engine.cache, "token")));
  context.out.json(Node::map({{"well", true},
                              {"parameters", checked.parameters},
                              {"slots", engine.slots},
                              {"context", engine.cache},
                              {"target", checked.target},
                              {"warnings", warnings},
                              {"quotas", quotas}}));
  context.out.message("next: systole plan " + words_of(arguments));
  return ExitCode::done;
}

ExitCode check_workload(const CheckOptions& options, Context& context) {
  const LoadedWorkload loaded = load_workload(options.workload).value();
  const Workload& workload = loaded.workload;
  if (workload.kind == Workload::Kind::machines) {
    const Node quotas = tell_quotas(check_targets(loaded, options.workload.environment).value(), context);
    context.out.data(fmt::format("{}: OK: machines, of which nothing runs", options.workload.path));
    context.out.json(Node::map({{"well", true}, {"machines", workload.gcloud.name}, {"quotas", quotas}}));
    return ExitCode::done;
  }
  if (!workload.command.empty()) {
    const std::vector<QuotaNote> notes = check_targets(loaded, options.workload.environment).value();
    const std::string program = find_program(workload.command.front()).value();
    const Node quotas = tell_quotas(notes, context);
    context.out.data(fmt::format("{}: OK: runs {}, about which nothing more is known", options.workload.path, program));
    context.out.json(Node::map({{"well", true}, {"program", program}, {"quotas", quotas}}));
    return ExitCode::done;
  }
  if (workload.kind == Workload::Kind::serve) return check_serving(options.workload, loaded, context);
  const CheckedWorkload checked = check_training(options.workload, loaded, context.clock).value();
  const Node warnings = tell_warnings(checked.warnings, context);
  const Node quotas = tell_quotas(checked.quotas, context);
  context.out.prose(fmt::format("{}: OK: {}, {} trained, for {}\n", options.workload.path,
                                counted(checked.parameters, "parameter"), with_commas(checked.trained),
                                checked.target));
  context.out.json(Node::map({{"well", true},
                              {"parameters", checked.parameters},
                              {"trained_parameters", checked.trained},
                              {"target", checked.target},
                              {"warnings", warnings},
                              {"quotas", quotas}}));
  context.out.message("next: systole plan " + words_of(options.workload));
  return ExitCode::done;
}

}  // namespace

void add_check(Subcommand app, Context& context) {
  auto options = std::make_shared<CheckOptions>();
  Subcommand command =
      add_command(app, "check", "every error of a workload at once; nothing is run", options, context, check_workload);
  options->workload.command = true;
  options->workload.machines = true;
  options->workload.serves = true;
  add_workload_arguments(command, options->workload);
}

}  // namespace systole::cli
