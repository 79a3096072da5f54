#pragma once
// A run's folder, claimed by the process that leads the run: from the claim to the end of its ledger interval.

#include <memory>
#include <optional>

#include "operate/run/asked_run.h"

namespace systole {

class RunClaim {
 public:
  // All are borrowed. `lock`: of a run that begins (lock_of_run). `held`: the folder, if already claimed.
  RunClaim(const RequestedRun& run, PlannedRun& prepared, const RunScene& scene, std::optional<Node> lock,
           std::optional<RunFolder> held);

  // Claims the folder if needed, and checks that the run begins or goes on as requested; then `prepared` has the
  // checkpoint that the run began from. Errors: those of claim_folder, claim_checkpoints and check_disk; invalid.
  Status take();
  // With a budget: begins its ledger interval, and reports what is left. REQUIRES: taken. Errors: io.
  Status begin_budget();
  // Ends the interval. Errors: io; the next interval then closes it.
  Status end(int exit_code);

  RunFolder& folder() { return *folder_; }       // REQUIRES: taken
  bool goes_on() const { return goes_on_; }      // the folder holds a run
  RunBudget* budget() { return budget_.get(); }  // null: no budget, or its interval has not begun

 private:
  const RequestedRun& run_;
  PlannedRun& prepared_;
  const RunScene& scene_;
  std::optional<Node> lock_;
  std::optional<RunFolder> folder_;
  std::unique_ptr<RunBudget> budget_;
  bool goes_on_ = false;
};

}  // namespace systole
