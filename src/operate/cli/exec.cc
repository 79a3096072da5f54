// `systole exec RUN -- COMMAND...` and `systole ssh RUN`: beside the ranks of a run, on the machines that it has.

#include "ground/process/spawn.h"
#include "operate/cli/cluster_runs.h"

namespace systole::cli {
namespace {

struct ExecOptions {
  std::string run, node;
  std::vector<std::string> command;
};

ExitCode exec(const ExecOptions& options, Context& context) {
  const std::unique_ptr<ClusterRun> run = cluster_run(options.run, context);
  const std::vector<Seen> jobs = run->look();
  for (const Seen& job : jobs) {
    if (job.phase != Phase::running && job.phase != Phase::starting && job.phase != Phase::saving) continue;
    Command command;
    command.argv = run->cluster->inside(run->record, job, options.node, options.command).value();
    command.own_group = false;  // the terminal's Ctrl-C goes to it
    const Exit exit = Process::start(command).value().wait();
    return static_cast<ExitCode>(exit.signal != 0 ? 128 + exit.signal : exit.code);
  }
  fail(error(ErrorKind::not_found, "the run '{}' has no machines: it is {}", options.run,
             told(run->record, overall(jobs)))
           .hinted("systole runs tells when it has"));
}

}  // namespace

void add_exec(Subcommand app, Context& context) {
  auto options = std::make_shared<ExecOptions>();
  Subcommand command =
      add_command(app, "exec", "run a command on a machine of a run on a cluster", options, context, exec);
  command.add_option("run", options->run, "the run's name").required();
  command.add_option("--node", options->node, "which machine; without: the first");
  command.add_option("command", options->command, "the command, behind --").required();
}

void add_ssh(Subcommand app, Context& context) {
  auto options = std::make_shared<ExecOptions>();
  Subcommand command = add_command(app, "ssh", "a shell on a machine of a run on a cluster", options, context, exec);
  command.add_option("run", options->run, "the run's name").required();
  command.add_option("--node", options->node, "which machine; without: the first");
}

}  // namespace systole::cli
