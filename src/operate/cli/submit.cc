// `systole submit WORKLOAD --on TARGET`: renders it, submits it to the target, and records the run.

#include <fmt/ranges.h>

#include "describe/spec/target_needs.h"
#include "operate/cli/rendering.h"
#include "operate/cli/run_scene.h"
#include "operate/run/batch_document.h"
#include "operate/run/run_places.h"
#include "operate/runs/submit_ask.h"
#include "operate/runs/submitted_rows.h"

namespace systole::cli {
namespace {

struct SubmitOptions {
  RenderArguments job;
  std::vector<std::string> after;
  std::string context;
};

// Refuses a target whose files are started by hand, and options that it lacks. An unknown target is refused later.
void check_takes_runs(const SubmitOptions& options) {
  const std::string& target = options.job.on;
  const JobTargetRow* row = find_job_target_row(target);
  if (row == nullptr) return;
  if (!row->submits)
    fail(error(ErrorKind::invalid, "'{}' is nothing that runs are submitted to", target)
             .hinted(fmt::format("systole render WORKLOAD --on {} writes its files; submit takes {}", target,
                                 fmt::join(job_targets_that(&JobTargetRow::submits), ", "))));
  if (!options.after.empty() && !row->chains)
    fail(option_lacks(*row, &JobTargetRow::chains, "--after",
                      "systole logs -f RUN waits for one, and ends with its exit code"));
  if (!options.context.empty() && !row->contexts)
    fail(option_lacks(*row, &JobTargetRow::contexts, "--context", "leave --context out"));
}

// A run ends, has a state and results; a server has none of these, and its cluster keeps it. Errors of the workload are
// left to its rendering.
void refuse_serving(const SubmitOptions& options) {
  if (options.job.workload.path.empty()) return;
  const Result<LoadedWorkload> loaded = load_workload(options.job.workload);
  if (!loaded.ok() || loaded->workload.kind != Workload::Kind::serve) return;
  const JobTargetRow* row = find_job_target_row(options.job.on);
  fail(error(ErrorKind::invalid, "submit starts runs, which end, and this workload serves")
           .at({options.job.workload.path})
           .hinted(fmt::format("systole render {} --on {}; it prints the line that starts it",
                               words_of(options.job.workload),
                               row != nullptr && row->serves ? row->name : "kubernetes")));
}

void refuse_batch(const SubmitOptions& options) {
  if (options.job.workload.path.empty() || !batch_document(options.job.workload).value()) return;
  fail(error(ErrorKind::unsupported, "a job of `systole batch` is rendered, and its files are applied by hand")
           .hinted(fmt::format("systole render {} --on {}", words_of(options.job.workload), options.job.on)));
}

// Ids of the jobs that it waits for, by run names.
std::vector<std::string> ids_of(const SubmitOptions& options, Context& context) {
  std::vector<std::string> ids;
  for (const std::string& name : options.after) {
    const std::unique_ptr<ClusterRun> run = cluster_run(name, follow_scene_of(context));
    if (run->record.target != options.job.on)
      fail(error(ErrorKind::invalid, "--after: '{}' was submitted to {}", name, run->record.target));
    ids.push_back(run->record.id);
  }
  return ids;
}

ExitCode submit(const SubmitOptions& given, Context& context) {
  SubmitOptions options = given;
  settle_target(options.job, "submit");
  check_takes_runs(options);
  refuse_serving(options);
  refuse_batch(options);
  const std::unique_ptr<ClusterClient> cluster =
      open_cluster(options.job.on, {{"context", options.context}}, follow_scene_of(context).messages.warning).value();
  const std::string kept = Submissions::path_below(kRunsFolder).value();
  const RenderedJob job = render_job(
      options.job, "submit", [&](const std::string& run) { return Submissions::place_below(kept, run) + "/files"; },
      [&](Workload& workload) { cluster->set_defaults(workload); });
  for (const std::string& warning : cluster->warnings().value()) context.out.warning(warning);
  for (const std::string& line : job.storage) context.out.message(line);
  for (const std::string& warning : job.rendered.warnings) context.out.warning(warning);
  SubmitRequest ask = ask_of(job, *cluster);
  ask.record.after = ids_of(options, context);
  Submissions submissions = Submissions::open(kRunsFolder).value();
  Audit audit(submissions.path(), context.clock);
  const std::optional<Record> old = submissions.find(ask.record.run).value();
  const std::string told = old ? told_before(kRunsFolder, *old) : "";
  const Result<Submitted> submitted = systole::submit(*cluster, ask, {submissions, audit, context.clock, told});
  if (!submitted.ok()) submissions.remove_if_empty();
  const Submitted done = submitted.value();
  const std::string& run = done.record.run;
  context.out.data(fmt::format("{}: {} {} job {}", run, done.was_there ? "had been submitted as" : "submitted as",
                               done.record.target, done.record.id));
  context.out.message(fmt::format("look:  systole runs\nread:  systole logs -f {0}\nstop:  systole stop {0}", run));
  Node node = to_node(done.record);
  context.out.json(node.set("was_there", done.was_there));
  return ExitCode::done;
}

}  // namespace

void add_submit(Subcommand app, Context& context) {
  auto options = std::make_shared<SubmitOptions>();
  Subcommand command = add_command(app, "submit", "give a workload to a cluster, once", options, context, submit);
  add_render_arguments(command, options->job, job_targets_that(&JobTargetRow::submits));
  command.add_option("--context", options->context,
                     fmt::format("{}: which cluster of the kubeconfig; without: its current context",
                                 fmt::join(job_targets_that(&JobTargetRow::contexts), ", ")));
  command
      .add_option("--after", options->after,
                  fmt::format("{}: begin when this run is done; may be repeated",
                              fmt::join(job_targets_that(&JobTargetRow::chains), ", ")))
      .take_all();
}

}  // namespace systole::cli
