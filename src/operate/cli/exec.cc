// `systole exec RUN -- COMMAND...` and `systole ssh RUN`: run a command or a shell on a run's machines.

#include "describe/spec/target_needs.h"
#include "ground/process/spawn.h"
#include "operate/cli/run_scene.h"

namespace systole::cli {
namespace {

struct ExecOptions {
  std::string run, node;
  std::vector<std::string> command;
};

ExitCode exec(const ExecOptions& options, Context& context) {
  const std::unique_ptr<ClusterRun> run = cluster_run(options.run, follow_scene_of(context));
  const JobTargetRow* target = find_job_target_row(run->record.target);
  if (target != nullptr && !target->exec) fail(option_lacks(*target, &JobTargetRow::exec, "exec", ""));
  const RunStatus status = run->query();
  for (const JobStatus& job : status.jobs) {
    if (job.state != RunState::running && job.state != RunState::starting && job.state != RunState::saving) continue;
    Command command;
    command.argv = run->cluster->inside(run->record, job, options.node, options.command).value();
    command.own_group = false;  // it gets the terminal's Ctrl-C
    const Exit exit = Process::start(command).value().wait();
    return static_cast<ExitCode>(exit.signal != 0 ? 128 + exit.signal : exit.code);
  }
  fail(error(ErrorKind::not_found, "the run '{}' has no machines: it is {}", options.run,
             describe_status(run->record, status.overall()))
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
