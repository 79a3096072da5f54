// `systole check WORKLOAD`: all errors of a workload at once, what it needs that this machine lacks, and legal settings
// that are probably mistakes. For a workload with keys of a cluster also what render would refuse, and quotas above a
// new project's default. Builds the whole Program on a device that runs nothing, and checks that text files exist;
// reads none of them and allocates no arena.

#include <algorithm>

#include "describe/job/engine_program.h"
#include "describe/models/list.h"
#include "execute/backends/null/null.h"
#include "ground/base/counted.h"
#include "ground/base/errors.h"
#include "ground/process/spawn.h"
#include "operate/check/lint.h"
#include "operate/cli/rendering.h"
#include "operate/cli/workload_options.h"
#include "operate/run/origin.h"
#include "operate/run/planned_replicas.h"
#include "operate/run/run_places.h"
#include "operate/targets/job_targets.h"

namespace systole::cli {
namespace {

struct CheckOptions {
  WorkloadArguments workload;
};

Status check_origin(const Workload& workload, const WorkloadSource& source) {
  if (workload.resume.from.empty()) return {};
  return fits_origin(workload, TRY(find_origin(workload, source)), source);
}

// Reports each on stderr; returns them for --json.
Node tell_quotas(const std::vector<QuotaNote>& notes, Context& context) {
  Node all = Node::sequence();
  for (const QuotaNote& note : notes) {
    context.out.note("quota: " + note.text, note.hint);
    all.push(Node::map({{"text", note.text}, {"hint", note.hint}}));
  }
  return all;
}

// Lint warnings, and the secrets that a run on this machine would not find; those that the workload's env sets are not
// checked.
std::vector<Lint> warnings_of(const Workload& workload) {
  std::vector<Lint> all = systole::lint(workload);
  CheckpointSpec keys = workload.checkpoint;
  for (std::string* ref : {&keys.encryption_key, &keys.signing_key})
    for (const auto* given : {&workload.env, &workload.secrets})
      if (std::ranges::any_of(*given, [&](const auto& variable) { return *ref == "env:" + variable.first; }))
        ref->clear();
  for (const MissingKey& missing : missing_keys(keys))
    all.push_back({"missing_key", missing.key, missing.why.message, missing.why.hint});
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

// With the replicas that a cluster would be rendered with, if a workload names one or says on which terms it is had.
LoadedWorkload with_replicas(LoadedWorkload loaded, Clock& clock) {
  if (job_targets_meant(loaded.workload, loaded.source).empty() && !loaded.workload.resources.provisioning)
    return loaded;
  CatalogView view = open_catalog_view(clock).value();
  Result<std::string> planned = set_planned_replicas(view, loaded.workload);
  if (!planned.ok()) fail(loaded.source.placed(std::move(planned).error()));
  return loaded;
}

// Builds the server's Program and reads the trace.
ExitCode check_serving(const WorkloadArguments& arguments, const LoadedWorkload& given, Context& context) {
  const LoadedWorkload loaded = with_replicas(given, context.clock);
  const Workload& workload = loaded.workload;
  pin_isa(arguments.backend, arguments.pin_isa).value();
  const Machine machine = open_machine(arguments.backend, workload.resources, context.clock).value();
  const std::unique_ptr<Device> device = make_null_device(machine.device->target());
  const std::unique_ptr<const Model> model = make_model(workload.model);
  const EngineOptions engine = completed(*model, {.slots = workload.serve.slots,
                                                  .cache = workload.serve.context.value_or(0),
                                                  .buckets = {},
                                                  .parameter = workload.serve.parameter,
                                                  .compute = workload.serve.compute,
                                                  .cache_type = workload.serve.cache});
  verify(engine_program(*model, engine, device->target(),
                        [&](const Graph& graph, const GraphNode& node) { return device->workspace(graph, node); }));
  trace_of(workload).value();
  const std::vector<QuotaNote> notes = check_targets(loaded, arguments.environment).value();
  const Node warnings = tell_warnings(systole::lint(workload), context);
  const Node quotas = tell_quotas(notes, context);
  const std::int64_t parameters = num_parameters(*model);
  context.out.prose(fmt::format("{}: OK: {} serve {} of {} at once\n", arguments.path, counted(parameters, "parameter"),
                                counted(engine.slots, "sequence"), counted(engine.cache, "token")));
  context.out.json(Node::map({{"well", true},
                              {"parameters", parameters},
                              {"slots", engine.slots},
                              {"context", engine.cache},
                              {"target", device->target().name},
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
  pin_isa(options.workload.backend, options.workload.pin_isa).value();
  const Machine machine = open_machine(options.workload.backend, workload.resources, context.clock,
                                       {.ranks = workload.num_devices(), .exact = workload.train.exact})
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
  const Node warnings = tell_warnings(warnings_of(workload), context);
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
  options->workload.serves = true;
  add_workload_arguments(command, options->workload);
}

}  // namespace systole::cli
