#include "operate/run/run_program.h"

#include <unistd.h>

#include <filesystem>

#include "ground/base/counted.h"
#include "ground/base/exit_code.h"
#include "ground/base/hash.h"
#include "ground/base/shell_quoted.h"
#include "ground/process/machine.h"
#include "operate/launch/secrets.h"
#include "operate/observe/event_file.h"
#include "operate/observe/run_files.h"
#include "operate/run/run_wait.h"

namespace systole {
namespace {

std::string logs_of(const std::string& folder) { return folder + "/logs"; }

Opened opened(const std::string& folder, const RunScene& scene) {
  Opened event;
  event.run = std::filesystem::path(folder).filename().string();
  event.at = scene.clock.timestamp();
  event.process = getpid();
  event.host = host_name();
  event.command = scene.command_line;
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

// A program's run while its agent leads.
class LedProgram {
 public:
  LedProgram(const Workload& workload, const RunArguments& arguments, const RequestedProgram& program,
             const RunScene& scene, std::optional<RunFolder> claimed)
      : workload_(workload),
        arguments_(arguments),
        budget_buys_(program.budget_buys),
        machines_(program.machines),
        what_(fmt::format("{} of: {}", program.ranks, program.command)),
        scene_(scene),
        began_(scene.clock.now()),
        folder_(std::move(claimed)) {}

  // Claims the folder, and begins the run's records and its budget.
  Status lead() {
    const std::string& path = arguments_.folder;
    if (!folder_) folder_ = TRY(claim_folder(path, ResumeMode::anew, TRY(folder_wait(arguments_, scene_))));
    TRY(begins_as(*folder_, ResumeMode::anew));
    TRY(make_dirs_synced(*folder_->store, "logs"));
    TRY(write_whole(*folder_->store, RunFiles::workload, to_yaml(workload_)));
    events_ = TRY(EventFile::open(*folder_->store, TRY(next_event_file(*folder_->store))));
    events_->add({Seconds(), opened(path, scene_)});
    scene_.messages.notice(fmt::format("{}: {}, {}", workload_.name, path, what_));
    if (budget_buys_) budget_ = TRY(RunBudget::begin(*budget_buys_, machines_, path, arguments_.budget, scene_.clock));
    return {};
  }

  bool budget_is_used(Seconds but_for) const { return budget_ != nullptr && budget_->left() <= but_for; }

  void close_events(const Result<LaunchOutcome>& launched) {
    if (events_ == nullptr) return;
    events_->add({scene_.clock.now() - began_, ended(launched)});
    if (const Status written = events_->close(); !written.ok()) scene_.messages.warning(written.error());
  }
  void end_budget(int exit_code) {
    if (budget_ == nullptr) return;
    if (const Status noted = budget_->end(exit_code); !noted.ok()) scene_.messages.warning(noted.error());
  }

 private:
  const Workload& workload_;
  const RunArguments& arguments_;
  std::optional<Seconds> budget_buys_;
  std::int64_t machines_;
  std::string what_;
  const RunScene& scene_;
  Seconds began_;
  std::optional<RunFolder> folder_;
  std::unique_ptr<EventFile> events_;
  std::unique_ptr<RunBudget> budget_;
};

// Sets the program, and the environment of its ranks.
Status set_command(const Workload& workload, LaunchOptions& options) {
  keep_to_owner(workload);
  for (auto& [name, value] : TRY(read_secrets(workload))) options.command.env.emplace_back(name, std::move(value));
  options.command.argv = workload.command;
  for (const auto& [name, value] : workload.env) options.command.env.emplace_back(name, value);
  if (!workload.resume.from.empty()) options.command.env.emplace_back(kResumeFrom, workload.resume.from);
  return {};
}

}  // namespace

Result<RequestedProgram> settle_program(const Workload& workload, const RunArguments& arguments, SignalWatch& signals,
                                        const RunScene& scene) {
  RequestedProgram program;
  program.options = TRY(launch_options(arguments.ranks, logs_of(arguments.folder), signals, scene.messages.message));
  const MembershipOptions& m = program.options.membership;
  program.ranks = m.min_ranks == m.max_ranks ? counted(m.min_ranks, "rank")
                                             : fmt::format("{} to {}", m.min_ranks, counted(m.max_ranks, "rank"));
  program.command = shell_line(workload.command);
  TRY(find_program(workload.command.front()));
  program.machines = machines_of(arguments.ranks, m.max_ranks);
  program.budget_buys = TRY(budget_of(workload, nullptr, program.machines, arguments.budget));
  return program;
}

Result<LaunchOutcome> run_program(const Workload& workload, const RunArguments& arguments, RequestedProgram program,
                                  SignalWatch& signals, const RunScene& scene, std::optional<RunFolder> claimed) {
  const std::string& folder = arguments.folder;
  LaunchOptions& options = program.options;
  TRY(set_command(workload, options));
  std::error_code failed;  // the leader of several nodes may have made it already
  std::filesystem::create_directories(logs_of(folder), failed);
  options.membership.own_ranks = false;
  options.membership.notice = workload.ranks.notice.value_or(RanksSpec::kNotice);
  options.tls = workload.ranks.tls;
  options.run = std::filesystem::path(folder).filename().string();
  options.workload = to_hex(hash128(to_yaml(workload)));
  const std::unique_ptr<PreemptionWatch> preemption = TRY(PreemptionWatch::start({workload.ranks.preemption}));
  heed_preemption(options, *preemption);
  LedProgram led(workload, arguments, program, scene, std::move(claimed));
  options.lead = [&led]() -> Result<LaunchWatch*> {
    TRY(led.lead());
    return nullptr;
  };
  if (program.budget_buys)  // its notice to save comes before the end
    heed_budget(options, [&led, notice = options.membership.notice] { return led.budget_is_used(notice); });
  Result<LaunchOutcome> launched = launch(std::move(options));
  led.close_events(launched);
  if (!launched.ok()) return launched;
  signals.end_is_known();
  led.end_budget(launched->exit_code);
  return launched;
}

}  // namespace systole
