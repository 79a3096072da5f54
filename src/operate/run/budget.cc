#include "operate/run/budget.h"

#include <cmath>
#include <csignal>
#include <filesystem>

#include "ground/base/files.h"
#include "ground/base/quantity.h"
#include "operate/cluster/allocation_ledger.h"
#include "operate/observe/run_files.h"
#include "operate/render/job_budget.h"

namespace systole {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLedger = "ledger";
constexpr const char* kId = "run";
constexpr int kKilled = 137;
// From the last step to the end of an allocation: agents exit and the cluster's own programs end. Measured on Slurm:
// 1.3 s.
constexpr Seconds kParting(2.0);

// The last sign of life of the previous leader, since a killed one recorded no end: a model's events, or a program's
// log.
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

Result<std::optional<Seconds>> budget_of(const Workload& workload, const Plan* plan, std::int64_t machines,
                                         const BudgetArguments& arguments) {
  if (arguments.time.empty()) return budget_time(workload, usd_per_hour(workload, plan, machines), machines);
  const Result<Seconds> time = as_seconds(Node(arguments.time));
  if (time.ok() && *time > Seconds()) return std::optional(*time);
  return error(ErrorKind::invalid, "--budget-time: '{}' is no time", arguments.time).hinted("--budget-time 3600s");
}

Status RunBudget::read(const std::string& ledger) {
  const std::vector<AllocationInterval> turns = read_ledger(TRY(ledger_text(ledger)));
  // The ledger counts whole seconds. Round up the current one, or the end could fall one second after the budget.
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
  const std::vector<AllocationInterval> turns = read_ledger(TRY(ledger_text(budget->own_ledger_)));
  std::string lines;
  if (!turns.empty() && !turns.back().ended_at) {
    const std::int64_t last = std::max(turns.back().began_at, last_written(folder));
    lines = fmt::format("ended {} {} {} {}\n", kId, turns.back().restart, last, kKilled);
  }
  budget->turn_ = static_cast<std::int64_t>(turns.size());
  lines += fmt::format("began {} {} {} {}\n", kId, budget->turn_, clock.unix_time(), machines);
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
  return add_to_ledger(own_ledger_, fmt::format("ended {} {} {} {}\n", kId, turn_, clock_.unix_time(), code));
}

void heed_budget(LaunchOptions& options, std::function<bool()> is_used) {
  if (!is_used) return;
  options.stop = [stop = options.stop, is_used = std::move(is_used)]() {
    LaunchStop asked = stop ? stop() : LaunchStop{};
    if (asked.count == 0 && is_used()) asked = {1, SIGTERM, true};
    return asked;
  };
}

}  // namespace systole
