#include "operate/cli/run_program.h"

#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <optional>

#include "ground/base/counted.h"
#include "ground/base/exit_code.h"
#include "ground/base/hash.h"
#include "ground/process/machine.h"
#include "operate/cli/run_wait.h"
#include "operate/cli/train_run.h"
#include "operate/cli/workload_options.h"
#include "operate/launch/secrets.h"
#include "operate/observe/event_file.h"
#include "operate/observe/run_files.h"
#include "operate/render/quote.h"

namespace systole::cli {
namespace {

std::string words_of(const std::vector<std::string>& command) {
  std::string text;
  for (const std::string& word : command) text += (text.empty() ? "" : " ") + shell_word(word);
  return text;
}

// A program's steps are its own affair: what is known of it is that it began, and how it ended.
Opened opened(const std::string& folder, Context& context) {
  Opened event;
  event.run = std::filesystem::path(folder).filename().string();
  event.at = context.clock.timestamp();
  event.process = getpid();
  event.host = host_name();
  event.command = context.command_line;
  return event;
}

Stopped ended(const Result<LaunchOutcome>& launched) {
  Stopped event;
  event.detail = launched.ok() ? launched->sentence : to_string(launched.error());
  const int code = launched.ok() ? launched->exit_code : kExitNo;
  event.saved = code == kExitSaved;
  const bool asked = code == kExitSaved || code == kExitNotSaved || code == kExitInterrupted;
  event.reason = code == kExitDone ? "finished" : code == kExitOverBudget ? "budget" : asked ? "signal" : "error";
  return event;
}

}  // namespace

ExitCode run_program(const Workload& workload, const RunArguments& arguments, Context& context) {
  const std::string& folder = arguments.folder;
  SignalWatch signals;
  signals.end_at_once();          // until it leads or follows
  std::signal(SIGPIPE, SIG_IGN);  // a reader of its lines that goes away must not end a run
  const std::string logs = folder + "/logs";
  LaunchOptions options = launch_options(arguments.ranks, logs, signals, context).value();
  const MembershipOptions& m = options.membership;
  const std::string ranks = m.min_ranks == m.max_ranks
                                ? counted(m.min_ranks, "rank")
                                : fmt::format("{} to {}", m.min_ranks, counted(m.max_ranks, "rank"));
  find_program(workload.command.front()).value();
  const std::int64_t machines = machines_of(arguments.ranks, m.max_ranks);
  const std::optional<Seconds> budget_buys = budget_of(workload, nullptr, machines, arguments.budget).value();
  std::unique_ptr<RunBudget> budget;
  if (arguments.dry_run) {
    context.out.data(fmt::format("would start {} of: {}", ranks, words_of(workload.command)));
    context.out.json(Node::map({{"min_ranks", m.min_ranks}, {"max_ranks", m.max_ranks}}));
    return ExitCode::done;
  }
  keep_to_owner(workload);
  for (auto& [name, value] : read_secrets(workload).value()) options.command.env.emplace_back(name, std::move(value));
  std::error_code failed;
  std::filesystem::create_directories(logs, failed);  // of several nodes' one may be there before the one that leads
  std::optional<RunFolder> claimed;
  std::unique_ptr<EventFile> events;  // of the agent that leads
  options.lead = [&]() -> Result<LaunchWatch*> {
    claimed = TRY(claim_run_folder(arguments, Begins::anew));
    TRY(make_dirs_synced(*claimed->store, "logs"));
    TRY(write_whole(*claimed->store, RunFiles::workload, to_yaml(workload)));
    events = TRY(EventFile::open(*claimed->store, TRY(next_event_file(*claimed->store))));
    events->add({Seconds(), opened(folder, context)});
    context.out.notice(fmt::format("{}: {}, {} of: {}", workload.name, folder, ranks, words_of(workload.command)));
    if (budget_buys) budget = TRY(RunBudget::begin(*budget_buys, machines, folder, arguments.budget, context.clock));
    return nullptr;
  };
  options.membership.own_ranks = false;
  options.tls = workload.ranks.tls;
  options.run = std::filesystem::path(folder).filename().string();
  options.workload = to_hex(hash128(to_yaml(workload)));
  options.command.argv = workload.command;
  for (const auto& [name, value] : workload.env) options.command.env.emplace_back(name, value);
  if (!workload.resume.from.empty()) options.command.env.emplace_back(kResumeFrom, workload.resume.from);
  const std::unique_ptr<PreemptionWatch> preemption = PreemptionWatch::start({workload.ranks.preemption}).value();
  heed_preemption(options, *preemption);
  options.membership.notice = workload.ranks.notice.value_or(RanksSpec::kNotice);
  if (budget_buys)  // it has its notice to save in before
    heed_budget(options,
                [&, notice = options.membership.notice] { return budget != nullptr && budget->left() <= notice; });
  const Seconds began = context.clock.now();
  const Result<LaunchOutcome> launched = launch(std::move(options));
  if (events != nullptr) {
    events->add({context.clock.now() - began, ended(launched)});
    if (const Status written = events->close(); !written.ok()) context.out.warning(written.error());
  }
  const LaunchOutcome& outcome = launched.value();
  signals.end_is_known();
  if (budget != nullptr)
    if (const Status noted = budget->end(outcome.exit_code); !noted.ok()) context.out.warning(noted.error());
  const bool bad = outcome.exit_code == kExitNo;
  context.out.prose(bad ? fmt::format("{}; logs are in {}", outcome.sentence, logs) : outcome.sentence);
  context.out.json(Node::map({{"folder", folder}, {"ending", outcome.sentence}, {"exit_code", outcome.exit_code}}));
  return static_cast<ExitCode>(outcome.exit_code);
}

}  // namespace systole::cli
