#include "operate/run/run_wait.h"

#include "ground/base/quantity.h"
#include "ground/process/signal_watch.h"

namespace systole {

Result<FolderWait> folder_wait(const RunArguments& arguments, const RunScene& scene) {
  const bool of_several_nodes = !arguments.ranks.rendezvous.empty();
  if (arguments.wait.empty())
    return FolderWait{.hint = of_several_nodes ? "wait for it" : "wait for it (--wait 10min)"};
  const Result<Seconds> patience = parse_seconds(arguments.wait);
  if (!patience.ok())
    return error(ErrorKind::invalid, "--wait: '{}' is no length of time", arguments.wait)
        .hinted("--wait 10min, or --wait 90s");
  if (of_several_nodes)
    return error(ErrorKind::invalid, "--wait: of several nodes the one that leads takes the folder, once all are there")
        .hinted("take --wait out, and begin them when 'systole runs' tells that the run has ended");
  return FolderWait{.patience = *patience, .clock = &scene.clock, .told = scene.messages.message};
}

Result<std::optional<RunFolder>> claim_in_turn(const RunArguments& arguments, ResumeMode begins,
                                               const RunScene& scene) {
  const FolderWait wait = TRY(folder_wait(arguments, scene));
  if (arguments.wait.empty() || arguments.dry_run) return std::optional<RunFolder>();
  SignalWatch signals;
  signals.end_at_once();
  return std::optional(TRY(claim_folder(arguments.folder, begins, wait)));
}

}  // namespace systole
