#include "execute/train/trainer.h"

#include <algorithm>
#include <cmath>

#include "execute/train/bad_value.h"
#include "execute/train/phase_observer.h"
#include "execute/train/rate.h"
#include "execute/train/state.h"

namespace systole {

constexpr int kSaveThreads = 2;  // one writes while the other hashes; training has the other cores

Node to_node(const TrainState& state) {
  return Node::map({{"step", state.step},
                    {"tokens", state.tokens},
                    {"skipped", state.skipped},
                    {"trained_seconds", state.trained.count()},
                    {"loss_trend", to_node(state.trend)},
                    {"cursor", state.cursor}});
}

Result<TrainState> state_from(const Node& extra) {
  TrainState state;
  state.step = TRY(TRY(extra.get("step"))->as_int(0));
  state.tokens = TRY(TRY(extra.get("tokens"))->as_int(0));
  state.skipped = TRY(TRY(extra.get("skipped"))->as_int(0));
  state.trained = Seconds(TRY(TRY(extra.get("trained_seconds"))->as_double()));
  // Older checkpoints have no trend; then it begins anew.
  if (const Node* trend = extra.find("loss_trend")) state.trend = TRY(trend_from(*trend));
  state.cursor = *TRY(extra.get("cursor"));
  return state;
}

Trainer::Trainer(const Job& job, Executor& executor, TrainerParts parts, TimeLedger& ledger, TrainState from)
    : job_(job),
      executor_(executor),
      parts_(std::move(parts)),
      ledger_(ledger),
      state_(std::move(from)),
      shapes_(shapes_of(job, executor)),
      evaluation_feed_(executor, "evaluate/", parts_.device),
      evaluate_(job.program->find_schedule("evaluate")),
      snapshot_(job.program->find_schedule("snapshot")),
      host_state_(executor) {
  observer_ = std::make_unique<PhaseObserver>(ledger_, parts_.hooks, parts_.stages);
  const CheckpointSpec& spec = job.workload.checkpoint;
  save_options_.group = parts_.save_group;
  save_options_.retention = {static_cast<int>(spec.keep), spec.keep_every, spec.best};
  save_options_.compress = spec.compress;
  save_options_.threads = kSaveThreads;
  // A checkpoint implies the steps before it, so their events are flushed before it is committed.
  save_options_.on_phase = [this](checkpoint::SavePhase phase, bool begins) {
    if (phase == checkpoint::SavePhase::commit && begins) parts_.events->flush().value();
    if (parts_.hooks.on_save_phase) parts_.hooks.on_save_phase(phase, begins);
  };
  saver_ = std::make_unique<checkpoint::AsyncSaver>(parts_.checkpoints, save_options_, Bytes(0));
  request_.identity = {job.model->family(), parameters_hash(*job.model), numbers_hash(job.workload)};
  request_.tensors = state_to_save(executor_, parts_.device, &host_state_);
  for (const auto& [name, into] :
       {std::pair("loss", &Results::loss), std::pair("norm", &Results::norm), std::pair("skipped", &Results::skipped),
        std::pair(kExpertChoices, &Results::choices), std::pair(kDroppedChoices, &Results::dropped)}) {
    const bool counted = into == &Results::choices || into == &Results::dropped;
    if (counted && !job.program->find_value(name)) continue;
    const int value = job.program->value_named(name);
    for (int slot = 0; slot < job.program->values[static_cast<std::size_t>(value)].slots; ++slot) {
      step_scalars_.push_back({value, slot});
      results_of_.push_back(into);
    }
  }
  if (evaluate_ != nullptr) evaluate_loss_ = {job.program->value_named("evaluate/loss")};
  opened_ = parts_.clock->now();
  saved_step_ = asked_step_ = state_.step;
  asked_tokens_ = state_.tokens;
  // Hooks that read a step's values at its end must find them there.
  ahead_ = executor.device().runs_ahead() && !parts_.hooks.on_gradients && !parts_.hooks.after_step &&
           !job.workload.observe.replay_check;
}

Trainer::~Trainer() {
  const auto end = [](InFlight& in_flight) {
    for (DeviceEvent& read : in_flight.reads) (void)read.wait();  // the read writes to `in_flight`
  };
  for (StartedStep& step : steps_) end(step.in_flight);
  for (StartedEvaluation& evaluation : evaluations_) end(evaluation.in_flight);
}

void Trainer::emit(EventBody body) { parts_.events->add(Event{parts_.clock->now() - opened_, std::move(body)}); }

Progress Trainer::progress() const {
  const TrainSpec& train = job_.workload.train;
  Progress p;
  p.step = asked_step_;
  if (train.steps) {
    p.steps_total = static_cast<double>(*train.steps);
    p.fraction = static_cast<double>(asked_step_) / p.steps_total;
  } else if (train.tokens) {
    p.fraction = static_cast<double>(asked_tokens_) / static_cast<double>(*train.tokens);
    p.steps_total = p.fraction > 0 ? static_cast<double>(asked_step_) / p.fraction : 1e9;
  } else if (train.time) {
    p.fraction = state_.trained / *train.time;
    p.steps_total = p.fraction > 0 ? static_cast<double>(asked_step_) / p.fraction : 1e9;
  }
  p.fraction = std::min(1.0, p.fraction);
  return p;
}

template <typename T>
Result<T> Trainer::as_rank_0(T mine) {
  if (parts_.communicator != nullptr)
    TRY(parts_.communicator->broadcast(std::as_writable_bytes(std::span(&mine, 1)), 0));
  return mine;
}

// True if the run is over after the started steps.
Result<bool> Trainer::is_over() {
  const TrainSpec& train = job_.workload.train;
  if (train.steps) return asked_step_ >= *train.steps;
  if (train.tokens) return asked_tokens_ >= *train.tokens;
  return train.time && state_.trained >= *train.time;
}

// Steps are due at multiples of their interval, so a resumed run saves and evaluates at the same steps as an
// uninterrupted one. This is after the started steps.
Result<bool> Trainer::is_due(const Interval& interval, Seconds last_time) {
  bool due = interval.steps > 0 && asked_step_ % interval.steps == 0;
  if (interval.time > Seconds()) due = due || TRY(as_rank_0(parts_.clock->now() - last_time >= interval.time));
  return due;
}

// True if nothing comes between the started step and the next, so that the next can start before it ends.
Result<bool> Trainer::goes_on_at_once() {
  const Workload& workload = job_.workload;
  if (!ahead_ || workload.train.time || TRY(is_over())) return false;  // a timed run reads the clock at each step
  if (evaluate_ != nullptr && parts_.held_out && TRY(is_due(workload.train.evaluate, last_evaluation_time_)))
    return false;
  if (TRY(is_due(workload.checkpoint.every, last_save_time_))) return false;
  return TRY(stop_cause()) == StopCause::none;
}

// Time of the next step, the evaluation after it, and the final save. Before the first save, a save counts as a step.
Seconds Trainer::taken_by_next() const {
  const Interval& every = job_.workload.train.evaluate;
  const bool evaluates = every.steps > 0 ? (asked_step_ + 1) % every.steps == 0 : every.time > Seconds();
  return step_time_ + (evaluates ? evaluation_time_ : Seconds()) + (save_time_ > Seconds() ? save_time_ : step_time_);
}

Result<Trainer::StopCause> Trainer::stop_cause() {
  StopCause cause = StopCause::none;
  if (parts_.stop_requested && parts_.stop_requested())
    cause = StopCause::asked;
  else if (parts_.budget && parts_.budget->left() <= taken_by_next())
    cause = StopCause::budget;
  return as_rank_0(cause);
}

// Notes when half and when nine tenths of the budget are used.
void Trainer::tell_budget() {
  if (!parts_.budget) return;
  const double used = 1 - parts_.budget->left() / parts_.budget->all;
  for (const double share : {0.9, 0.5}) {
    if (used < share) continue;
    if (told_of_budget_ < share)
      emit(systole::Note{"warning", fmt::format("{:.0f}% of the budget is used", 100 * share), "budget", {}});
    break;
  }
  told_of_budget_ = std::max(told_of_budget_, used);
}

// Runs the gradients first if they are checked or observed before use.
Status Trainer::run_step(std::int64_t step, Shape& shape) {
  const std::int64_t every = job_.workload.observe.replay_check.value_or(0);
  const bool check = every > 0 && step % every == 0;
  if (!check && !parts_.hooks.on_gradients) return executor_.run(*shape.train, observer_.get());
  TRY(executor_.run(*shape.train, observer_.get(), shape.replay.of_gradients()));
  if (parts_.hooks.on_gradients) parts_.hooks.on_gradients(step, shape.replay);
  if (check) TRY(shape.replay.compare(step, observer_.get()));
  return executor_.run(*shape.train, observer_.get(), shape.replay.after_gradients());
}

// Runs once per run; the rank where the bad value began reports the op.
Status Trainer::look_for_bad(std::int64_t step) {
  if (parts_.communicator == nullptr || looked_for_bad_) return {};
  looked_for_bad_ = true;
  const InCategory looking(ledger_, Category::other);
  Result<std::optional<std::string>> found =
      first_bad_value(executor_, *shape_->train, shape_->replay.of_gradients(), step, *parts_.communicator);
  if (!found.ok() && found.error().kind == ErrorKind::unsupported) return {};
  if (!found.ok()) return std::move(found).error();
  if (*found) emit(systole::Note{"error", fmt::format("rank {}: {}", parts_.device, **found), "nan", {}});
  return {};
}

Status Trainer::start_step(StartedStep& started) {
  const std::int64_t step = asked_step_ + 1;
  started.began = parts_.clock->now();
  observer_->step = step;
  ledger_.set_step(step);
  if (parts_.stages != nullptr) parts_.stages->step_began(step);
  started.ended = {};
  started.ended.step = step;
  const StepBatch* batch = nullptr;
  {
    const InCategory waiting(ledger_, Category::data_wait);
    if (parts_.hooks.on_phase) parts_.hooks.on_phase("read");
    batch = TRY(parts_.source->next());
    CHECK(batch != nullptr, "the training rows ended");
    shape_ = &shape_of(*batch);
    TRY(shape_->feed.put(*batch, parts_.vocabulary));
  }
  BatchFeeder& feed = shapes_.back().feed;  // of what all shapes share
  started.ended.rate = rate_at(job_.workload.train.optimizer, progress());
  started.ended.labels = batch->label_count;
  TRY(feed.put_scalar("rate", started.ended.rate));
  TRY(feed.put_scalar("label_count", static_cast<double>(std::max<std::int64_t>(1, batch->label_count))));
  TRY(feed.put_scalar("seed", static_cast<double>(job_.workload.train.seed)));
  TRY(feed.put_scalar("step", static_cast<double>(step)));
  TRY(feed.put_coordinates());
  TRY(shape_->feed.put_rows(shape_->microbatch_rows));
  ++shape_->steps;
  if (ahead_) {
    executor_.start_run(*shape_->train, observer_.get(), started.in_flight.actions);
    read_ahead(started.in_flight, step_scalars_);
  } else {
    TRY(run_step(step, *shape_));
  }
  asked_step_ = step;
  asked_tokens_ += batch->label_count;
  return {};
}

// Starts to read the scalars of started work, before later work overwrites them.
void Trainer::read_ahead(InFlight& in_flight, std::span<const Scalar> scalars) {
  in_flight.scalars.resize(scalars.size());
  in_flight.reads.clear();
  for (std::size_t nth = 0; nth < scalars.size(); ++nth) {
    const auto& [value, slot] = scalars[nth];
    const DType dtype = job_.program->values[static_cast<std::size_t>(value)].type.dtype;
    const std::span<std::byte> into(in_flight.scalars[nth]);
    in_flight.reads.push_back(executor_.read_later(value, slot, into.first(static_cast<std::size_t>(size_of(dtype)))));
  }
}

double Trainer::taken(const InFlight& in_flight, std::size_t nth, const Scalar& scalar) {
  const DType dtype = job_.program->values[static_cast<std::size_t>(scalar.value)].type.dtype;
  std::array<std::byte, 8> bytes{};
  if (ahead_) {
    bytes = in_flight.scalars[nth];
  } else {
    executor_.read(scalar.value, scalar.slot, std::span(bytes).first(static_cast<std::size_t>(size_of(dtype)))).value();
  }
  return load(dtype, bytes.data(), 0);
}

Status Trainer::wait_for(InFlight& in_flight) {
  Status done = executor_.wait(in_flight.actions, observer_.get());
  for (DeviceEvent& read : in_flight.reads) {
    Status there = read.wait();
    if (done.ok()) done = std::move(there);
  }
  in_flight.reads.clear();
  return done;
}

// Waits for the started step; takes its loss, norm, and whether it was skipped.
Status Trainer::take_results(StartedStep& started) {
  {
    const InCategory waiting(ledger_, Category::compute);
    TRY(wait_for(started.in_flight));
  }
  Results results;
  for (std::size_t nth = 0; nth < step_scalars_.size(); ++nth)
    results.*results_of_[nth] += taken(started.in_flight, nth, step_scalars_[nth]);
  started.ended.loss = results.loss / static_cast<double>(std::max<std::int64_t>(1, started.ended.labels));
  started.ended.gradient_norm = results.norm;
  started.ended.skipped = results.skipped != 0;
  if (results.choices > 0) started.ended.dropped = results.dropped / results.choices;
  return {};
}

Status Trainer::end_step(StartedStep& started) {
  ledger_.set_step(started.ended.step);
  TRY(take_results(started));
  StepEnded& ended = started.ended;
  state_.step = ended.step;
  state_.tokens += ended.labels;
  state_.skipped += ended.skipped ? 1 : 0;
  state_.trend.add(ended.loss, job_.workload.train.divergence_factor);
  skips_in_row_ = ended.skipped ? skips_in_row_ + 1 : 0;
  if (ended.skipped) TRY(look_for_bad(ended.step));
  ended.tokens = state_.tokens;
  const InCategory logging(ledger_, Category::logging);
  if (parts_.hooks.in_logging) parts_.hooks.in_logging(ended.step);
  if (parts_.hooks.after_step) TRY(parts_.hooks.after_step(ended.step));
  ended.seconds = ledger_.take_interval();
  last_ = ended;
  emit(ended);
  if (std::optional<Note> note = waits_.after_step(ended.seconds)) emit(std::move(*note));
  const Seconds now = parts_.clock->now();
  const Seconds took = now - std::max(started.began, trained_to_);
  state_.trained += took;
  step_time_ = std::max(step_time_, took);
  trained_to_ = now;
  tell_budget();
  if (job_.workload.train.time) state_.trained = TRY(as_rank_0(state_.trained));  // the learning rate depends on it
  if (parts_.stages != nullptr) parts_.stages->step_ended(ended.step);
  return {};
}

// After a stop request the notice may be shorter than a save takes, judged by the last save. Then the state is not
// saved; the last checkpoint is intact.
Result<bool> Trainer::is_time_to_save(const TrainOutcome& outcome) {
  if (outcome.ending != Ending::stopped || !parts_.time_to_stop) return true;
  const Seconds left = TRY(as_rank_0(parts_.time_to_stop())), needed = TRY(as_rank_0(save_time_));
  request_.patience = left;
  if (left > needed) return true;
  emit(systole::Note{"warning",
                     fmt::format("step {} is not saved: of the notice {} are left, and a save takes {}", state_.step,
                                 to_string(std::max(left, Seconds())), to_string(needed)),
                     "checkpoint",
                     {}});
  return false;
}

Result<TrainOutcome> Trainer::run() {
  const InCategory rest(ledger_, Category::other);
  TrainOutcome outcome;
  last_save_time_ = last_evaluation_time_ = parts_.clock->now();
  const Workload& workload = job_.workload;
  const bool evaluates = evaluate_ != nullptr && parts_.held_out;
  const auto diverged = [&outcome](std::optional<std::string> why) {
    if (!why) return false;
    outcome.ending = Ending::diverged;
    outcome.detail = std::move(*why);
    return true;
  };
  (void)ledger_.take_interval();
  for (bool started = false; started || !TRY(is_over());) {
    if (!started) {
      if (const StopCause cause = TRY(stop_cause()); cause != StopCause::none) {
        outcome.ending = Ending::stopped;
        outcome.budget_used = cause == StopCause::budget;
        if (cause == StopCause::asked && parts_.hooks.on_stop) parts_.hooks.on_stop(state_.step);
        break;
      }
      TRY(start_step(steps_[0]));
    }
    const bool on = TRY(goes_on_at_once());
    if (on) TRY(start_step(steps_[1]));
    TRY(end_step(steps_[0]));
    if (diverged(divergence_of(workload.train, *last_, state_.trend, skips_in_row_))) break;
    TRY(finish_save(false));
    started = on;
    std::swap(steps_[0], steps_[1]);
    if (on) continue;
    if (TRY(is_over())) break;  // the end does this anyway, before its checkpoint
    if (evaluates && TRY(is_due(workload.train.evaluate, last_evaluation_time_))) {
      last_evaluation_time_ = parts_.clock->now();
      const Evaluated evaluated = TRY(evaluate(workload.train.evaluate_batches));
      evaluation_time_ = std::max(evaluation_time_, parts_.clock->now() - last_evaluation_time_);
      emit(evaluated);
      if (diverged(divergence_of(workload.train, evaluated))) break;
    }
    if (TRY(is_due(workload.checkpoint.every, last_save_time_))) {
      last_save_time_ = parts_.clock->now();
      TRY(save(false));
    }
  }
  TRY(finish_save(true));
  if (outcome.ending == Ending::finished && evaluates) {
    outcome.evaluation = TRY(evaluate(0));
    emit(*outcome.evaluation);
  }
  if (outcome.ending != Ending::diverged && saved_step_ != state_.step && TRY(is_time_to_save(outcome)))
    TRY(save(true));
  // The final state is saved even if it has diverged: users may inspect it, and older checkpoints remain.
  if (outcome.evaluation) {
    diverged(divergence_of(workload.train, *outcome.evaluation));
  } else if (outcome.ending == Ending::finished && last_) {
    diverged(divergence_at_end(workload.train, *last_));
  }
  outcome.saved = saved_step_ == state_.step;
  outcome.state = state_;
  outcome.waits = parts_.source->waits();
  if (shapes_.size() > 1)
    for (const Shape& shape : shapes_) outcome.steps_of_shapes.push_back(shape.steps);
  return outcome;
}

}  // namespace systole
