#pragma once
// What a run may still cost, as time of its machines: its budget over their price, less what its ledger has. The ledger
// (operate/cluster/ledger.h) is that of whoever starts the run, which has every second of every allocation, or else one
// in the run's own folder, which has those in which somebody led it.

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "describe/spec/plan.h"
#include "execute/train/trainer.h"
#include "ground/base/clock.h"
#include "operate/cli/options.h"
#include "operate/launch/launch.h"

namespace systole::cli {

struct BudgetArguments {
  std::string time;    // that the budget buys, "3600s"; empty: by the price of the workload, or of the plan
  std::string ledger;  // of whoever starts the run; empty: RUN/ledger
};
void add_budget_arguments(Subcommand command, BudgetArguments& arguments);

// What the workload's budget buys of `machines` together, as whoever starts it says, else as operate/render/budget.h.
// `plan`: may be null. Errors: invalid.
Result<std::optional<Seconds>> budget_of(const Workload& workload, const Plan* plan, std::int64_t machines,
                                         const BudgetArguments& arguments);

class RunBudget {
 public:
  // Of the run in `folder`, which this process holds: what it keeps itself it begins a turn in. Errors: io.
  static Result<std::unique_ptr<RunBudget>> begin(Seconds all, std::int64_t machines, const std::string& folder,
                                                  const BudgetArguments& arguments, Clock& clock);
  // The same of a rank, whose agent began. Errors: io.
  static Result<std::unique_ptr<RunBudget>> look(Seconds all, const std::string& folder,
                                                 const BudgetArguments& arguments, Clock& clock);
  // Ends the turn. Errors: io.
  Status end(int code);

  Seconds all() const { return all_; }
  Seconds left() const { return left_ - (clock_.now() - begun_); }
  TimeBudget of_trainer() const {
    return {all_, [this] { return left(); }};
  }

 private:
  RunBudget(Seconds all, Clock& clock) : all_(all), clock_(clock), begun_(clock.now()) {}
  Status read(const std::string& ledger);
  Seconds all_;
  Clock& clock_;
  Seconds begun_, left_;
  std::string own_ledger_;  // its path; empty: somebody else keeps it
  std::int64_t turn_ = 0;
};

// A launch stops when it is; asked all the time. Empty: there is no budget.
void heed_budget(LaunchOptions& options, std::function<bool()> is_used);

}  // namespace systole::cli
