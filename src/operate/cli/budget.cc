#include "operate/cli/budget.h"

#include <cmath>
#include <csignal>
#include <filesystem>

#include "ground/base/files.h"
#include "ground/base/quantity.h"
#include "operate/cluster/ledger.h"
#include "operate/observe/run_files.h"
#include "operate/render/budget.h"

namespace systole::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLedger = "ledger";
constexpr const char* kId = "run";
constexpr int kKilled = 137;
// From the last step to the end of an allocation: agents part, the cluster's own programs end. On Slurm it took 1.3 s.
constexpr Seconds kParting(2.0);

std::int64_t unix_second(Clock& clock) { return std::chrono::system_clock::to_time_t(clock.calendar()); }

// The last sign of life of whoever led before, for a killed one wrote no end: a model's events, a program's lines.
std::int64_t last_written(const std::string& folder) {
  std::int64_t last = 0;
  std::error_code failed;
  for (const char* of : {RunFiles::events, "logs"})
    for (const fs::path& path : paths_in(folder + "/" + of)) {
      if (!is_file(path)) continue;
      const auto time = fs::file_time_type::clock::to_sys(fs::last_write_time(path, failed));
      last = std::max<std::int64_t>(last, std::chrono::system_clock::to_time_t(
                                              std::chrono::time_point_cast<std::chrono::system_clock::duration>(time)));
    }
  return last;
}

}  // namespace

void add_budget_arguments(Subcommand command, BudgetArguments& arguments) {
  command.add_option("--budget-time", arguments.time,
                     "machine time that objective.budget buys, as 3600s, by whoever starts it and knows the price");
  command.add_option("--ledger", arguments.ledger,
                     "file in which whoever starts it notes when its machines were held; without: RUN/ledger");
}

Result<std::optional<Seconds>> budget_of(const Workload& workload, const Plan* plan, std::int64_t machines,
                                         const BudgetArguments& arguments) {
  if (arguments.time.empty()) return budget_time(workload, plan, machines);
  const Result<Seconds> time = as_seconds(Node(arguments.time));
  if (time.ok() && *time > Seconds()) return std::optional(*time);
  return error(ErrorKind::invalid, "--budget-time: '{}' is no time", arguments.time).hinted("--budget-time 3600s");
}

Status RunBudget::read(const std::string& ledger) {
  const std::vector<LedgerTurn> turns = read_ledger(TRY(ledger_text(ledger)));
  // A ledger has whole seconds: one that is under way counts, or the end could fall into one more than was bought.
  const double now = std::chrono::duration<double>(clock_.calendar().time_since_epoch()).count();
  const double whole = std::floor(now);
  left_ = all_ - Seconds(allocated_seconds(turns, static_cast<std::int64_t>(whole)) + now - whole);
  begun_ = clock_.now();
  return {};
}

Result<std::unique_ptr<RunBudget>> RunBudget::begin(Seconds all, std::int64_t machines, const std::string& folder,
                                                    const BudgetArguments& arguments, Clock& clock) {
  if (!arguments.ledger.empty()) return look(all, folder, arguments, clock);
  std::unique_ptr<RunBudget> budget(new RunBudget(all, clock));
  budget->own_ledger_ = folder + "/" + kLedger;
  const std::vector<LedgerTurn> turns = read_ledger(TRY(ledger_text(budget->own_ledger_)));
  std::string lines;
  if (!turns.empty() && !turns.back().ended_at) {
    const std::int64_t last = std::max(turns.back().began_at, last_written(folder));
    lines = fmt::format("ended {} {} {} {}\n", kId, turns.back().restart, last, kKilled);
  }
  budget->turn_ = static_cast<std::int64_t>(turns.size());
  lines += fmt::format("began {} {} {} {}\n", kId, budget->turn_, unix_second(clock), machines);
  TRY(add_to_ledger(budget->own_ledger_, lines));
  TRY(budget->read(budget->own_ledger_));
  return budget;
}

Result<std::unique_ptr<RunBudget>> RunBudget::look(Seconds all, const std::string& folder,
                                                   const BudgetArguments& arguments, Clock& clock) {
  std::unique_ptr<RunBudget> budget(new RunBudget(all, clock));
  TRY(budget->read(arguments.ledger.empty() ? folder + "/" + kLedger : arguments.ledger));
  if (!arguments.ledger.empty()) budget->left_ -= kParting;
  return budget;
}

Status RunBudget::end(int code) {
  if (own_ledger_.empty()) return {};
  return add_to_ledger(own_ledger_, fmt::format("ended {} {} {} {}\n", kId, turn_, unix_second(clock_), code));
}

void heed_budget(LaunchOptions& options, std::function<bool()> is_used) {
  if (!is_used) return;
  options.stop = [stop = options.stop, is_used = std::move(is_used)]() {
    LaunchStop asked = stop ? stop() : LaunchStop{};
    if (asked.count == 0 && is_used()) asked = {1, SIGTERM, true};
    return asked;
  };
}

}  // namespace systole::cli
