// `systole submit WORKLOAD --on TARGET`: renders it, gives it to the target, and keeps which run that is.

#include "operate/cluster/submit.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "ground/base/files.h"
#include "operate/cli/cluster_runs.h"
#include "operate/cli/rendering.h"

namespace systole::cli {
namespace {

struct SubmitOptions {
  RenderArguments job;
  std::vector<std::string> after;
  std::string context;
};

// What is started by hand, out of its files.
void check_takes_runs(const std::string& target) {
  const std::vector<std::string> targets = cluster_targets();
  if (std::ranges::find(targets, target) != targets.end() || !render_target_named(target).ok()) return;
  fail(error(ErrorKind::invalid, "'{}' is nothing that runs are submitted to", target)
           .hinted(fmt::format("systole render WORKLOAD --on {} writes its files; submit takes {}", target,
                               fmt::join(targets, ", "))));
}

// The jobs that it waits for, by the names of their runs.
std::vector<std::string> ids_of(const SubmitOptions& options, Context& context) {
  std::vector<std::string> ids;
  for (const std::string& name : options.after) {
    const std::unique_ptr<ClusterRun> run = cluster_run(name, context);
    if (run->record.target != options.job.on)
      fail(error(ErrorKind::invalid, "--after: '{}' was submitted to {}", name, run->record.target));
    ids.push_back(run->record.id);
  }
  return ids;
}

}  // namespace

SubmitAsk ask_of(const RenderedJob& job, const ClusterClient& cluster) {
  SubmitAsk ask{.files = job.rendered.files, .sources = job.sources, .program = "/proc/self/exe"};
  Record& record = ask.record;
  record.run = job.rendered.run;
  record.target = cluster.name();
  record.from = working_folder().value();
  record.folder = job.rendered.folder;
  record.where = job.rendered.where;
  for (const auto& [what, value] : cluster.where()) record.where[what] = value;
  if (const std::string& space = job.workload.kubernetes.name_space; record.where.count("namespace") > 0)
    record.where["namespace"] = space;
  record.array = job.workload.slurm.array.has_value();
  record.workload_sha256 = job.workload_sha256;
  record.plan_sha256 = job.plan_sha256;
  record.program_sha256 = job.program_sha256;
  record.usd_per_hour = job.rendered.usd_per_hour;
  record.budget = job.workload.objective.budget;
  return ask;
}

namespace {

ExitCode submit(const SubmitOptions& options, Context& context) {
  check_takes_runs(options.job.on);
  const std::unique_ptr<ClusterClient> cluster =
      open_cluster(options.job.on, {{"context", options.context}}, context.out).value();
  const std::string kept = Submissions::path_below(kRunsFolder).value();
  const RenderedJob job = render_job(
      options.job, "submit", [&](const std::string& run) { return kept + "/" + run + "/files"; },
      [&](Workload& workload) { cluster->settle(workload); });
  for (const std::string& warning : cluster->warnings().value()) context.out.warning(warning);
  for (const std::string& warning : job.rendered.warnings) context.out.warning(warning);
  SubmitAsk ask = ask_of(job, *cluster);
  ask.record.after = ids_of(options, context);
  Submissions submissions = Submissions::open(kRunsFolder).value();
  Audit audit(submissions.path(), context.clock);
  const Result<Submitted> submitted = systole::submit(*cluster, ask, {submissions, audit, context.clock});
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
  add_render_arguments(command, options->job, cluster_targets());
  command.add_option("--context", options->context,
                     "kubernetes: which cluster of the kubeconfig; without: its current context");
  command.add_option("--after", options->after, "slurm: begin when this run is done; may be repeated").take_all();
}

}  // namespace systole::cli
