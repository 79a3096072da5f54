// `systole resume RUN`: goes on from the newest checkpoint that verifies.

#include <algorithm>

#include "ground/base/files.h"
#include "operate/cli/run_command.h"
#include "operate/cli/run_options.h"
#include "operate/cli/run_scene.h"
#include "operate/cli/workload_options.h"
#include "operate/observe/run_files.h"
#include "operate/render/quote.h"
#include "operate/run/run_numerics.h"
#include "operate/run/run_places.h"
#include "operate/run/run_wait.h"
#include "operate/runs/submit_ask.h"

namespace systole::cli {
namespace {

struct ResumeOptions {
  RunArguments run;
  std::vector<std::string> sets;
  std::string memory, backend = "cpu", pin_isa;
};

constexpr const char* kRecorded = "recorded";

// A run on a cluster: resubmits the same files and program, and its ranks go on from their checkpoint.
ExitCode resume_there(ClusterRun& run, const ResumeOptions& options, Context& context) {
  const Record& record = run.record;
  const bool budget_alone =
      std::ranges::all_of(options.sets, [](const std::string& set) { return set.starts_with("objective.budget="); });
  if (!budget_alone || !options.memory.empty() || !options.pin_isa.empty() || !options.run.wait.empty())
    fail(error(ErrorKind::unsupported, "the run '{}' is on {}, where it goes on as it was submitted", record.run,
               record.target)
             .hinted("with no option but --set objective.budget=DOLLARS; or submit a changed workload under another "
                     "name: --run"));
  const SubmitRequest ask = ask_again(run, options.sets, context.clock);
  const Submitted done = systole::submit(*run.cluster, ask, run.context()).value();
  context.out.data(fmt::format("{}: {} {} job {}", done.record.run, done.was_there ? "still is" : "submitted again as",
                               done.record.target, done.record.id));
  context.out.json(to_node(done.record));
  return ExitCode::done;
}

ExitCode resume(const ResumeOptions& options, Context& context) {
  if (const auto run = cluster_run_if_any(options.run.folder, follow_scene_of(context)))
    return resume_there(*run, options, context);
  RunArguments arguments = options.run;
  arguments.folder = find_run(kRunsFolder, arguments.folder).value();
  std::optional<RunFolder> held = claim_in_turn(arguments, ResumeMode::either, scene_of(context)).value();
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
  return run_workload(loaded.workload, prepare_options(from, loaded, context).value(), arguments,
                      ResumeMode::where_it_was, context, std::move(held));
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
