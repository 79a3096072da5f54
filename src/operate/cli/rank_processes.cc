#include "operate/cli/rank_processes.h"

#include <charconv>

#include "execute/checkpoint/folder.h"
#include "execute/train/job.h"
#include "ground/process/machine.h"
#include "operate/launch/launch.h"

namespace systole::cli {
namespace {

constexpr std::int64_t kMostRanks = 1024;

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc() || end != text.data() + text.size() || number < 1 || number > kMostRanks)
    return std::nullopt;
  return number;
}

}  // namespace

Result<RankCount> read_rank_count(const std::string& text) {
  if (text.empty()) return RankCount{};
  const std::size_t colon = text.find(':');
  const auto least = whole_number(text.substr(0, colon)),
             most = colon == text.npos ? least : whole_number(std::string_view(text).substr(colon + 1));
  if (!least || !most || *least > *most) {
    return error(ErrorKind::invalid, "--ranks {}: a number from 1 to {}, or two with a colon between", text, kMostRanks)
        .hinted("--ranks 8, or --ranks 2:8 where ranks may come and go");
  }
  return RankCount{*least, *most};
}

Result<ExitCode> run_in_processes(const RankProcesses& processes, const Prepared& prepared, const RunFolder& folder,
                                  SignalWatch& signals, Context& context) {
  const std::string logs = "ranks/logs";
  TRY(make_dirs_synced(*folder.store, logs));
  const checkpoint::Folder checkpoints{folder.store.get(), prepared.workload.checkpoint.folder};
  TRY(checkpoint::prepare(checkpoints));
  LaunchOptions options;
  options.membership.min_ranks = static_cast<int>(processes.count.least);
  options.membership.max_ranks = static_cast<int>(processes.count.most);
  options.slots = options.membership.max_ranks;
  options.node = host_name();
  options.run = folder.path;
  options.workload = numbers_hash(prepared.workload);
  options.log_folder = folder.path + "/" + logs;
  options.command.argv = {"/proc/self/exe",
                          "rank",
                          folder.path,
                          "--backend",
                          processes.backend,
                          "--memory",
                          fmt::format("{}B", processes.memory.count())};
  if (!processes.inject.empty()) {
    options.command.argv.push_back("--inject");
    options.command.argv.push_back(processes.inject);
  }
  options.tell = [&context](std::string_view sentence) { context.out.message(std::string(sentence)); };
  options.line = [&context](int rank, std::string_view line) {
    if (rank == 0) {
      context.out.data(std::string(line));
    } else {
      context.out.message(fmt::format("[rank {}] {}", rank, line));
    }
  };
  options.stop = [&signals] { return LaunchStop{signals.count(), signals.signal()}; };
  options.newest_checkpoint = [&checkpoints]() -> std::int64_t {
    const Result<std::vector<std::int64_t>> steps = checkpoint::list_steps(checkpoints);
    return steps.ok() && !steps->empty() ? steps->back() : -1;
  };
  const LaunchOutcome outcome = TRY(launch(std::move(options)));
  if (!outcome.sentence.empty()) context.out.message(outcome.sentence);
  return static_cast<ExitCode>(outcome.exit_code);
}

}  // namespace systole::cli
