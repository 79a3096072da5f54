#include "operate/run/run_claim.h"

#include <algorithm>

#include "operate/run/checkpoint_home.h"
#include "operate/run/job_lock.h"
#include "operate/run/origin.h"
#include "operate/run/run_places.h"
#include "operate/run/run_wait.h"

namespace systole {
namespace {

// A run that goes on keeps the origin that it recorded, whatever resume.from means now.
Status keep_origin(const RunFolder& run, const Workload& asked, PlannedRun& prepared, const WorkloadSource& source) {
  const std::string kept = TRY(kept_workload(*run.store, run.path)).resume.from;
  TRY(keeps_origin(asked, kept, run.path, source));
  prepared.workload.resume.from = kept;
  return {};
}

}  // namespace

RunClaim::RunClaim(const RequestedRun& run, PlannedRun& prepared, const RunScene& scene, std::optional<Node> lock,
                   std::optional<RunFolder> held)
    : run_(run), prepared_(prepared), scene_(scene), lock_(std::move(lock)), folder_(std::move(held)) {}

Status RunClaim::take() {
  const FolderWait wait = TRY(folder_wait(run_.arguments, scene_));
  if (!folder_) folder_ = TRY(claim_folder(run_.arguments.folder, run_.begins, wait));
  TRY(begins_as(*folder_, run_.begins));
  goes_on_ = folder_->holds_run;
  TRY(claim_checkpoints(*folder_, run_.workload.checkpoint, wait));
  if (goes_on_ && run_.begins == ResumeMode::either) TRY(same_run(*folder_, run_.workload));
  if (goes_on_) TRY(keep_origin(*folder_, run_.asked, prepared_, run_.preparing.source));
  if (goes_on_) TRY(check_goes_on(prepared_, *folder_));
  const CheckpointHome home = TRY(checkpoint_home(folder_->path, run_.workload.checkpoint, Absent::is_an_error));
  TRY(check_disk(prepared_, home));  // before anything is written that makes it a run
  if (!goes_on_) TRY(write_whole(*folder_->store, kRunLock, to_json(*lock_, 2) + "\n"));
  return {};
}

Status RunClaim::begin_budget() {
  if (!run_.budget_buys) return {};
  budget_ = TRY(RunBudget::begin(*run_.budget_buys, run_.machines, folder_->path, run_.arguments.budget, scene_.clock));
  const std::optional<Dollars> dollars = run_.asked.objective.budget;  // nothing if only --budget-time is given
  scene_.messages.notice(fmt::format("budget: {}{} of its machines' time, of which {} is left",
                                     dollars ? to_string(*dollars) + " is " : "", to_string(budget_->all()),
                                     to_string(std::max(budget_->left(), Seconds()))));
  return {};
}

Status RunClaim::end(int exit_code) { return budget_ != nullptr ? budget_->end(exit_code) : Status(); }

}  // namespace systole
