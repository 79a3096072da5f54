#include "operate/cli/budget.h"

#include <csignal>
#include <filesystem>

#include "ground/base/quantity.h"
#include "ground/base/text_file.h"
#include "ground/store/store.h"
#include "operate/cluster/ledger.h"
#include "operate/observe/run_files.h"

namespace systole::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLedger = "ledger";
constexpr const char* kId = "run";
constexpr int kKilled = 137;
// From the last step to the end of an allocation: agents part, the cluster's own programs end. Measured on Slurm: 1.3
// s.
constexpr Seconds kParting(2.0);

std::int64_t unix_second(Clock& clock) { return std::chrono::system_clock::to_time_t(clock.calendar()); }

// The last sign of life of whoever led before: a killed one wrote no end. Of a model its events, of a program its
// lines.
std::int64_t last_written(const std::string& folder) {
  std::int64_t last = 0;
  std::error_code failed;
  for (const char* of : {RunFiles::events, "logs"})
    for (const fs::directory_entry& entry : fs::directory_iterator(folder + "/" + of, failed)) {
      if (!entry.is_regular_file(failed)) continue;
      const auto time = fs::file_time_type::clock::to_sys(entry.last_write_time(failed));
      last = std::max<std::int64_t>(last, std::chrono::system_clock::to_time_t(
                                              std::chrono::time_point_cast<std::chrono::system_clock::duration>(time)));
    }
  return last;
}

Result<std::string> read_ledger_text(const std::string& path) {
  Result<std::string> text = read_text_file(path);
  if (!text.ok() && text.error().kind == ErrorKind::not_found) return std::string();
  return text;
}

Status append(const std::string& path, const std::string& lines) {
  const fs::path place(path);
  const std::unique_ptr<Store> store = TRY(open_posix_store(place.parent_path().string()));
  const std::string before = TRY(read_ledger_text(path));
  return write_whole(*store, place.filename().string(), with_lines_of(before, lines));
}

}  // namespace

void add_budget_arguments(CLI::App& command, BudgetArguments& arguments) {
  command.add_option("--budget-time", arguments.time,
                     "machine time that objective.budget buys, as 3600s, by whoever starts it and knows the price");
  command.add_option("--ledger", arguments.ledger,
                     "file in which whoever starts it notes when its machines were held; without: RUN/ledger");
}

Result<std::optional<Seconds>> budget_time(const Workload& workload, const Plan* plan, std::int64_t machines,
                                           const BudgetArguments& arguments) {
  if (!arguments.time.empty()) {
    const Result<Seconds> time = as_seconds(Node(arguments.time));
    if (time.ok() && *time > Seconds()) return std::optional(*time);
    return error(ErrorKind::invalid, "--budget-time: '{}' is no time", arguments.time).hinted("--budget-time 3600s");
  }
  if (!workload.objective.budget) return std::optional<Seconds>();
  std::optional<double> price;  // of all together
  if (workload.resources.price) {
    price = *workload.resources.price * static_cast<double>(machines);
  } else if (plan != nullptr && plan->cost && plan->cost->known) {
    price = plan->cost->dollars_per_hour;
  }
  if (!price || *price <= 0) {
    return error(ErrorKind::invalid, "objective.budget: nobody knows what an hour of these machines costs")
        .hinted("resources.price: DOLLARS of an hour of one of them; or take objective.budget out");
  }
  return std::optional(Seconds(*workload.objective.budget / *price * 3600));
}

Status RunBudget::read(const std::string& ledger) {
  const std::vector<LedgerTurn> turns = read_ledger(TRY(read_ledger_text(ledger)));
  left_ = all_ - Seconds(allocated_seconds(turns, unix_second(clock_)));
  begun_ = clock_.now();
  return {};
}

Result<std::unique_ptr<RunBudget>> RunBudget::begin(Seconds all, std::int64_t machines, const std::string& folder,
                                                    const BudgetArguments& arguments, Clock& clock) {
  if (!arguments.ledger.empty()) return look(all, folder, arguments, clock);
  std::unique_ptr<RunBudget> budget(new RunBudget(all, clock));
  budget->own_ledger_ = folder + "/" + kLedger;
  const std::vector<LedgerTurn> turns = read_ledger(TRY(read_ledger_text(budget->own_ledger_)));
  std::string lines;
  if (!turns.empty() && !turns.back().ended_at) {
    const std::int64_t last = std::max(turns.back().began_at, last_written(folder));
    lines = fmt::format("ended {} {} {} {}\n", kId, turns.back().restart, last, kKilled);
  }
  budget->turn_ = static_cast<std::int64_t>(turns.size());
  lines += fmt::format("began {} {} {} {}\n", kId, budget->turn_, unix_second(clock), machines);
  TRY(append(budget->own_ledger_, lines));
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
  return append(own_ledger_, fmt::format("ended {} {} {} {}\n", kId, turn_, unix_second(clock_), code));
}

void heed_budget(LaunchOptions& options, const std::unique_ptr<RunBudget>& budget, Seconds notice) {
  options.stop = [stop = options.stop, &budget, notice]() {
    LaunchStop asked = stop ? stop() : LaunchStop{};
    if (asked.count == 0 && budget != nullptr && budget->left() <= notice) asked = {1, SIGTERM, true};
    return asked;
  };
}

}  // namespace systole::cli
