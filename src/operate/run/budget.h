#pragma once
// The remaining budget of a run as machine time: its budget over the machines' price, minus what its ledger has
// recorded. The ledger (operate/cluster/allocation_ledger.h) belongs to whoever starts the run and has every second of
// every allocation. Otherwise it is in the run's own folder and has the time in which an agent led the run.

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "describe/spec/plan.h"
#include "execute/train/trainer.h"
#include "ground/base/clock.h"
#include "operate/launch/launch.h"

namespace systole {

struct BudgetArguments {
  std::string time;    // what the budget buys, "3600s"; empty: computed from the price of the workload or the plan
  std::string ledger;  // path of the starter's ledger; empty: RUN/ledger
};

// The total time that the workload's budget buys of `machines`: as the starter says, otherwise as in
// operate/render/job_budget.h. `plan`: may be null. Errors: invalid.
Result<std::optional<Seconds>> budget_of(const Workload& workload, const Plan* plan, std::int64_t machines,
                                         const BudgetArguments& arguments);

class RunBudget {
 public:
  // For the run in `folder`, which this process holds. Begins a ledger interval if the run keeps its own. Errors: io.
  static Result<std::unique_ptr<RunBudget>> begin(Seconds all, std::int64_t machines, const std::string& folder,
                                                  const BudgetArguments& arguments, Clock& clock);
  // For a rank; its agent began the interval. Errors: io.
  static Result<std::unique_ptr<RunBudget>> look(Seconds all, const std::string& folder,
                                                 const BudgetArguments& arguments, Clock& clock);
  // Ends the interval. Errors: io.
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
  std::string own_ledger_;  // its path; empty: the starter keeps the ledger
  std::int64_t turn_ = 0;
};

// Stops a launch when `is_used` returns true; it is polled. Empty: no budget.
void heed_budget(LaunchOptions& options, std::function<bool()> is_used);

}  // namespace systole
