// `systole check WORKLOAD`: every error of a workload at once, what it would need that this machine lacks, and what is
// legal but looks like a mistake; of a workload with keys of a cluster what render would refuse, too, and of which
// quota it needs more than a new project has. Builds the whole Program on a device that runs nothing and looks whether
// the files of text are there; reads none of them and allocates no arena.

#include "execute/backends/null/null.h"
#include "ground/base/counted.h"
#include "ground/process/spawn.h"
#include "operate/check/lint.h"
#include "operate/cli/origin.h"
#include "operate/cli/rank_threads.h"
#include "operate/cli/rendering.h"
#include "operate/cli/workload_options.h"

namespace systole::cli {
namespace {

struct CheckOptions {
  WorkloadArguments workload;
};

Status check_origin(const Workload& workload, const WorkloadSource& source) {
  if (workload.resume.from.empty()) return {};
  return fits_origin(workload, TRY(find_origin(workload, source)), source);
}

// Tells each on stderr; returns them for --json.
Node tell_quotas(const std::vector<QuotaNote>& notes, Context& context) {
  Node all = Node::sequence();
  for (const QuotaNote& note : notes) {
    context.out.message("note: quota: " + note.text);
    context.out.message("  hint: " + note.hint);
    all.push(Node::map({{"text", note.text}, {"hint", note.hint}}));
  }
  return all;
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
  pin_isa(options.workload.backend, options.workload.pin_isa).value();
  const Machine machine = open_machine(options.workload.backend, workload.resources, context.clock,
                                       {.ranks = ranks_of(workload), .exact = workload.train.exact})
                              .value();
  const std::unique_ptr<Device> device = make_null_device(machine.device->target());
  const Status threads = check_threads(options.workload.backend, workload.resources, loaded.source);
  const Status files = check_data_files(workload, loaded.source);
  const Result<Job> made = make_job(workload, *device);
  const Result<std::vector<QuotaNote>> targets = check_targets(loaded, options.workload.environment);
  const Status origin = check_origin(workload, loaded.source);
  std::vector<Error> errors;
  if (!threads.ok()) errors.push_back(threads.error());
  if (!files.ok()) errors.push_back(files.error());
  if (!made.ok()) errors.push_back(told_of_job(loaded.source, made.error()));
  if (!targets.ok()) errors.push_back(targets.error());
  if (!origin.ok()) errors.push_back(origin.error());
  if (!errors.empty()) fail(together(std::move(errors)));
  const Job& job = *made;
  verify(*job.program);
  Node warnings = Node::sequence();
  for (const Lint& lint : systole::lint(workload)) {
    context.out.warning(fmt::format("{}: {}", lint.key, lint.text), lint.hint);
    warnings.push(Node::map({{"key", lint.key}, {"text", lint.text}, {"hint", lint.hint}}));
  }
  const Node quotas = tell_quotas(*targets, context);
  const std::int64_t parameters = num_parameters(*job.model);
  context.out.prose(fmt::format("{}: OK: {}, {} trained, for {}\n", options.workload.path,
                                counted(parameters, "parameter"), with_commas(num_trainable(*job.model)),
                                device->target().name));
  context.out.json(Node::map({{"well", true},
                              {"parameters", parameters},
                              {"trained_parameters", num_trainable(*job.model)},
                              {"target", device->target().name},
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
  add_workload_arguments(command, options->workload);
}

}  // namespace systole::cli
