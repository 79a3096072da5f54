#include "operate/cli/program_command.h"

#include <csignal>

#include "ground/base/exit_code.h"
#include "operate/cli/run_scene.h"
#include "operate/run/run_program.h"

namespace systole::cli {

ExitCode run_program(const Workload& workload, const RunArguments& arguments, Context& context,
                     std::optional<RunFolder> claimed) {
  const RunScene scene = scene_of(context);
  SignalWatch signals;
  signals.end_at_once();          // until it leads or follows
  std::signal(SIGPIPE, SIG_IGN);  // a closed output pipe must not end a run
  RequestedProgram program = settle_program(workload, arguments, signals, scene).value();
  if (arguments.dry_run) {
    const MembershipOptions& ranks = program.options.membership;
    context.out.data(fmt::format("would start {} of: {}", program.ranks, program.command));
    context.out.json(Node::map({{"min_ranks", ranks.min_ranks}, {"max_ranks", ranks.max_ranks}}));
    return ExitCode::done;
  }
  const LaunchOutcome outcome =
      systole::run_program(workload, arguments, std::move(program), signals, scene, std::move(claimed)).value();
  const bool bad = outcome.exit_code == kExitNo;
  context.out.prose(bad ? fmt::format("{}; logs are in {}/logs", outcome.sentence, arguments.folder)
                        : outcome.sentence);
  context.out.json(
      Node::map({{"folder", arguments.folder}, {"ending", outcome.sentence}, {"exit_code", outcome.exit_code}}));
  return static_cast<ExitCode>(outcome.exit_code);
}

}  // namespace systole::cli
