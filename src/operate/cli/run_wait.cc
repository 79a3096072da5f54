#include "operate/cli/run_wait.h"

#include <algorithm>

#include "ground/base/files.h"
#include "ground/base/quantity.h"
#include "ground/process/signal_watch.h"
#include "operate/observe/run_files.h"
#include "operate/render/quote.h"

namespace systole::cli {
namespace {

Result<Seconds> longest_wait(const RunArguments& arguments) {
  Result<Seconds> time = parse_seconds(arguments.wait);
  if (!time.ok())
    return error(ErrorKind::invalid, "--wait: '{}' is no length of time", arguments.wait)
        .hinted("--wait 10min, or --wait 90s");
  if (!arguments.ranks.rendezvous.empty())
    return error(ErrorKind::invalid, "--wait: of several nodes the one that leads takes the folder, once all are there")
        .hinted("take --wait out, and begin them when 'systole runs' tells that the run has ended");
  return time;
}

}  // namespace

Result<std::shared_ptr<FileLock>> wait_for_folder(const RunArguments& arguments, Begins begins, Context& context) {
  const std::string& path = arguments.folder;
  const Seconds longest = TRY(longest_wait(arguments));
  if (arguments.dry_run || !is_folder(path)) return std::shared_ptr<FileLock>();
  SignalWatch signals;
  signals.end_at_once();
  const Seconds until = context.clock.now() + longest;
  std::string told;
  while (true) {
    if (begins == Begins::anew && path_exists(path + "/" + RunFiles::plan)) return holds_a_run(path);
    LockAttempt attempt = TRY(try_lock_folder(path));
    if (attempt.lock != nullptr) return std::shared_ptr<FileLock>(std::move(attempt.lock));
    const Seconds left = until - context.clock.now();
    if (left <= Seconds())
      return error(ErrorKind::busy, "the folder '{}' is in use by {}, for {} and longer", path, attempt.holder,
                   to_string(longest))
          .hinted(fmt::format("wait for longer, or look what it does: systole logs {}", shell_word(path)));
    if (told != attempt.holder)
      context.out.message(fmt::format("the folder '{}' is in use by {}; waiting for it, {} at most", path,
                                      attempt.holder, to_string(left)));
    told = attempt.holder;
    context.clock.sleep(std::min(left, Seconds(0.2)));
  }
}

Result<RunFolder> claim_run_folder(const RunArguments& arguments, Begins begins) {
  Result<RunFolder> claimed = claim_folder(arguments.folder, begins, arguments.held);
  if (claimed.ok() || claimed.error().kind != ErrorKind::busy || !arguments.ranks.rendezvous.empty()) return claimed;
  constexpr std::string_view kWait = "wait for it";
  Error busy = std::move(claimed).error();
  if (!busy.hint.starts_with(kWait)) busy.hint = kWait;
  busy.hint.insert(kWait.size(), " (--wait 10min)");
  return busy;
}

}  // namespace systole::cli
