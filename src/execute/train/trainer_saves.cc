// The trainer's checkpoints: starting saves, waiting for them, reporting failures.

#include <cmath>

#include "execute/train/phase_observer.h"
#include "execute/train/trainer.h"

namespace systole {

Status Trainer::finish_save(bool wait) {
  if (saving_step_ < 0) return {};
  const InCategory waiting(ledger_, Category::checkpoint);
  Result<std::optional<checkpoint::SaveReport>> ended = wait ? saver_->wait() : saver_->poll();
  if (!ended.ok()) return save_failed(std::move(ended).error());
  const std::optional<checkpoint::SaveReport> report = std::move(ended).value();
  if (!report) return {};
  saved_step_ = saving_step_;
  saving_step_ = -1;
  CheckpointSaved event;
  event.step = report->step;
  event.id = std::to_string(report->step);
  event.bytes = report->stats.written;
  event.snapshot = snapshot_time_;
  event.write = parts_.clock->now() - write_began_;
  save_time_ = std::max(save_time_, event.snapshot + event.write);
  emit(std::move(event));
  for (const std::int64_t removed : report->swept.removed) emit(CheckpointRemoved{removed, std::to_string(removed)});
  if (report->sweep_error)
    emit(systole::Note{
        "warning", "old checkpoints were not tidied up: " + report->sweep_error->message, "checkpoint", {}});
  return {};
}

// Adds to the error of a failed save how the run can go on; the checkpoint before it is intact.
Error Trainer::save_failed(Error why) const {
  const std::string from = saved_step_ > 0
                               ? fmt::format("the run can go on from its checkpoint of step {}", saved_step_)
                               : std::string("the run has no checkpoint yet");
  Error told = std::move(why);
  if (told.kind == ErrorKind::no_space) {
    const Bytes needed = checkpoint::save_bytes(request_.tensors, save_options_);
    const Result<Bytes> free = parts_.checkpoints.store->free_space();
    told.message = fmt::format("the disk is full: the checkpoint of step {} takes {} bytes, {} are free ({}); {}",
                               saving_step_, with_commas(needed.count()),
                               free.ok() ? with_commas(free->count()) : "unknown", told.message, from);
    told.hint = "free space on the disk of the run's folder (df -h shows it), then 'systole resume' it";
    return told;
  }
  told.message = fmt::format("the checkpoint of step {} was not saved: {}; {}", saving_step_, told.message, from);
  told.hint += told.hint.empty() ? "see to the disk of the run's folder, then 'systole resume' it"
                                 : "; then 'systole resume' the run";
  return told;
}

// There is one staging area, so a save waits for the save before it.
Status Trainer::wait_for_save_before() {
  if (saving_step_ < 0) return {};
  const std::int64_t before = saving_step_;
  const bool waits = saver_->in_flight();
  const Seconds began = parts_.clock->now();
  if (waits && parts_.hooks.on_phase) parts_.hooks.on_phase("wait");
  TRY(finish_save(true));
  if (!waits) return {};
  if (std::optional<Note> note = waits_.after_save(state_.step, before, parts_.clock->now() - began))
    emit(std::move(*note));
  return {};
}

// A checkpoint's metric is the evaluation at its very step, if there was one.
std::optional<double> Trainer::metric() const {
  const bool measured = evaluated_step_ == state_.step && evaluated_loss_ && std::isfinite(*evaluated_loss_);
  return measured ? evaluated_loss_ : std::nullopt;
}

// The step's thread copies the state and another thread writes it. Without a copy, the step's thread waits.
Status Trainer::save(bool wait) {
  TRY(wait_for_save_before());
  const Seconds before = parts_.clock->now();
  if (parts_.hooks.on_save_phase) parts_.hooks.on_save_phase(checkpoint::SavePhase::snapshot, true);
  if (snapshot_ != nullptr) TRY(executor_.run(*snapshot_, observer_.get()));
  if (host_state_.is_needed()) {
    const InCategory copying(ledger_, Category::snapshot);
    TRY(host_state_.take());
  }
  if (parts_.hooks.on_save_phase) parts_.hooks.on_save_phase(checkpoint::SavePhase::snapshot, false);
  snapshot_time_ = parts_.clock->now() - before;
  state_.cursor = parts_.source->cursor();
  request_.step = state_.step;
  request_.number = ++saves_;
  request_.date = parts_.clock->timestamp();
  request_.metric = metric();
  request_.extra = to_node(state_);
  request_.extra.set("numerics", parts_.numerics);
  request_.extra.set("isa", parts_.isa);
  if (!parts_.executables.is_null()) request_.extra.set("executables", parts_.executables);
  write_began_ = parts_.clock->now();
  {
    const InCategory starting(ledger_, Category::checkpoint);
    if (parts_.hooks.in_checkpoint) parts_.hooks.in_checkpoint(state_.step);
    TRY(saver_->begin_in_place(request_));
  }
  saving_step_ = state_.step;
  const bool copied = snapshot_ != nullptr || (host_state_.is_needed() && job_.workload.checkpoint.asynchronous);
  return wait || !copied ? finish_save(true) : Status();
}

}  // namespace systole
