// `systole resume RUN`: goes on from the newest checkpoint that verifies.

#include <algorithm>

#include "execute/checkpoint/restore.h"
#include "ground/base/files.h"
#include "operate/cli/checkpoint_home.h"
#include "operate/cli/cluster_runs.h"
#include "operate/cli/run_command.h"
#include "operate/cli/run_places.h"
#include "operate/cli/run_wait.h"
#include "operate/observe/run_files.h"
#include "operate/render/quote.h"

namespace systole::cli {
namespace {

struct ResumeOptions {
  RunArguments run;
  std::vector<std::string> sets;
  std::string memory, backend = "cpu", pin_isa;
};

constexpr const char* kRecorded = "recorded";

// The instructions that the newest checkpoint was computed with. Errors: not_found, if it does not say or there is
// none.
Result<std::string> recorded_isa(const std::string& folder, const Workload& workload) {
  const std::unique_ptr<Store> store = TRY(open_posix_store(folder));
  const CheckpointHome home = TRY(checkpoint_home(*store, folder, workload.checkpoint, Absent::is_an_error));
  const checkpoint::Folder checkpoints{home.store, home.dir, TRY(keys_of(workload.checkpoint, home))};
  const std::vector<std::int64_t> steps = TRY(checkpoint::list_steps(checkpoints));
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    const Result<checkpoint::Manifest> manifest = checkpoint::load_manifest(checkpoints, *step);
    if (!manifest.ok() && manifest.error().kind == ErrorKind::invalid) return below(home.root, manifest.error());
    if (!manifest.ok()) continue;
    if (const Node* isa = manifest->extra.find("isa"); isa != nullptr && !isa->text().empty()) return isa->text();
    break;
  }
  return error(ErrorKind::not_found, "--pin-isa: the run '{}' has no checkpoint that says its instructions", folder)
      .hinted("name them: --pin-isa avx2");
}

// With more to spend it is the same workload, rendered anew; whatever else changes makes another run.
SubmitAsk with_budget(ClusterRun& run, const std::vector<std::string>& sets) {
  const Record& record = run.record;
  if (!path_exists(record.place + "/workload.yaml"))
    fail(error(ErrorKind::not_found, "what '{}' was rendered from is where {} submitted it", record.run, record.by)
             .hinted(fmt::format("systole resume {} --set ... there", record.run)));
  RenderArguments from{.on = record.target, .run = record.run};
  from.workload.command = from.workload.kept = true;
  from.workload.sets = sets;
  (record.plan_sha256.empty() ? from.workload.path : from.plan) =
      record.place + (record.plan_sha256.empty() ? "/workload.yaml" : "/plan.json");
  const RenderedJob job = render_job(from, "resume", [&](const std::string&) { return record.place + "/files"; });
  SubmitAsk ask = ask_of(job, *run.cluster);
  ask.record.from = record.from;
  return ask;
}

// Begun with nothing to spend it would end at once.
void check_budget(ClusterRun& run, double budget, Context& context) {
  const Record& record = run.record;
  const std::vector<Seen> jobs = run.look();
  const double used = used_by(record, jobs, context.clock).dollars.value_or(0);
  const double stopped_at = overall(jobs).reason.starts_with(kBudgetUsed) ? record.budget.value_or(0) : 0;
  if (budget > std::max(used, stopped_at)) return;
  fail(error(ErrorKind::invalid, "the run '{}' has cost {}, and its budget is {}", record.run, to_string(Dollars(used)),
             to_string(Dollars(budget)))
           .hinted(fmt::format("systole resume {} --set objective.budget={:.2f}", record.run,
                               2 * std::max(used, stopped_at))));
}

// A run of a cluster: the same files and program are given to it again, and its ranks go on where they were.
ExitCode resume_there(ClusterRun& run, const ResumeOptions& options, Context& context) {
  const Record& record = run.record;
  const bool budget_alone =
      std::ranges::all_of(options.sets, [](const std::string& set) { return set.starts_with("objective.budget="); });
  if (!budget_alone || !options.memory.empty() || !options.pin_isa.empty() || !options.run.wait.empty())
    fail(error(ErrorKind::unsupported, "the run '{}' is on {}, where it goes on as it was submitted", record.run,
               record.target)
             .hinted("with no option but --set objective.budget=DOLLARS; or submit a changed workload under another "
                     "name: --run"));
  SubmitAsk ask{.record = record, .program = record.program};
  if (!options.sets.empty()) ask = with_budget(run, options.sets);
  ask.again = true;
  ask.record.after.clear();
  if (ask.record.budget) check_budget(run, *ask.record.budget, context);
  const Submitted done = systole::submit(*run.cluster, ask, run.desk()).value();
  context.out.data(fmt::format("{}: {} {} job {}", done.record.run, done.was_there ? "still is" : "submitted again as",
                               done.record.target, done.record.id));
  context.out.json(to_node(done.record));
  return ExitCode::done;
}

ExitCode resume(const ResumeOptions& options, Context& context) {
  if (const auto run = cluster_run_if_any(options.run.folder, context)) return resume_there(*run, options, context);
  RunArguments arguments = options.run;
  arguments.folder = find_run(kRunsFolder, arguments.folder).value();
  if (!arguments.wait.empty()) arguments.held = wait_for_folder(arguments, Begins::where_it_was, context).value();
  if (!path_exists(arguments.folder + "/workload.yaml")) {
    fail(error(ErrorKind::not_found, "the run '{}' has no workload.yaml: it ended before it began", arguments.folder)
             .hinted("begin it anew: systole run WORKLOAD; 'systole runs' lists the others"));
  }
  WorkloadArguments from;
  from.path = arguments.folder + "/workload.yaml";
  from.kept = true;
  from.sets = options.sets;
  from.memory = options.memory;
  from.backend = options.backend;
  from.command = true;
  const LoadedWorkload loaded = load_workload(from).value();
  if (!loaded.workload.command.empty()) {
    fail(error(ErrorKind::unsupported, "'{}' is of a program of your own, which goes on from what it saved itself",
               arguments.folder)
             .hinted(fmt::format("begin it again: systole run {}/workload.yaml", shell_word(arguments.folder))));
  }
  from.pin_isa =
      options.pin_isa == kRecorded ? recorded_isa(arguments.folder, loaded.workload).value() : options.pin_isa;
  arguments.again = machine_words(from);
  return run_workload(loaded.workload, prepare_options(from, loaded, context).value(), arguments, Begins::where_it_was,
                      context);
}

}  // namespace

void add_resume(Subcommand app, Context& context) {
  auto options = std::make_shared<ResumeOptions>();
  Subcommand command =
      add_command(app, "resume", "go on with a run that was stopped or killed", options, context, resume);
  command.add_option("run", options->run.folder,
                     "the run's folder, its name in runs/, or its number; without: the newest");
  command.add_option("--set", options->sets, "lay KEY=VALUE over the run's workload, as train.steps=2000").take_all();
  command.add_option("--memory", options->memory, "hold the process to this much memory, as 2GiB");
  Option backend = command.add_option("--backend", options->backend, "cpu, or reference")
                       .check(one_of({"cpu", "reference", "gpu", "tpu", "xla-cpu"}));
  command.add_option("--device", options->backend, "gpu or tpu: through its vendor's XLA; xla-cpu: XLA on this machine")
      .check(one_of({"cpu", "gpu", "tpu", "xla-cpu"}))
      .excludes(backend);
  command
      .add_option(
          "--pin-isa", options->pin_isa,
          "compute with no more than these instructions, as avx2; without a word: those of the checkpoint, where "
          "a machine with others began the run")
      .expected(0, 1)
      .default_str(kRecorded);
  add_rank_arguments(command, options->run.ranks);
  add_run_arguments(command, options->run);
}

}  // namespace systole::cli
