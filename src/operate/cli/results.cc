// `systole results RUN`: copies a cluster run's results to a folder and verifies their digests.

#include <csignal>

#include "operate/cli/run_scene.h"
#include "operate/runs/run_results.h"
#include "operate/runs/submitted_rows.h"

namespace systole::cli {
namespace {

struct ResultsOptions {
  std::string run, out;
};

ExitCode results(const ResultsOptions& options, Context& context) {
  std::signal(SIGPIPE, SIG_IGN);  // the unpacker may end early; that is reported as an error
  const std::unique_ptr<ClusterRun> run = cluster_run(options.run, follow_scene_of(context));
  const RunStatus all = run->query();
  const JobStatus status = all.overall();
  if (!is_over(status.state) && status.state != RunState::unknown)
    fail(error(ErrorKind::busy, "the run '{}' is {}", options.run, describe_status(run->record, status))
             .hinted(fmt::format("wait for it (systole logs -f {0}), or end it: systole stop {0}", options.run)));
  Node list = Node::sequence();
  for (const std::string& folder : result_folders(*run)) {
    const std::string place = bring_results(*run, folder, options.out, kRunsFolder);
    const std::string what = verified_checkpoint(place);
    context.out.data(fmt::format("{}{}", place, what.empty() ? "" : ": " + what));
    list.push(Node::map({{"folder", place}, {"checkpoint", what}}));
  }
  context.out.message(fmt::format("{}: {}", options.run, describe_status(run->record, status)));
  Node node = run_node(run->record, all, context.clock);
  context.out.json(node.set("results", list));
  return status.state == RunState::finished ? ExitCode::done : ExitCode::no;
}

}  // namespace

void add_results(Subcommand app, Context& context) {
  auto options = std::make_shared<ResultsOptions>();
  Subcommand command = add_command(app, "results", "bring what a run on a cluster came to", options, context, results);
  command.add_option("run", options->run, "the run's name").required();
  command.add_option(
      "--out", options->out,
      "copy it to this folder; without: says where it is, or copies it to runs/RUN where only its machines have it");
}

}  // namespace systole::cli
