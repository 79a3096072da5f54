#include "execute/train/trainer.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "execute/train/divergence.h"
#include "execute/train/rate.h"
#include "execute/train/state.h"

namespace systole {

// Opens the category of each action, by what its function is for.
class Trainer::PhaseObserver : public ActionObserver {
 public:
  PhaseObserver(TimeLedger& ledger, const TrainHooks& hooks) : ledger_(ledger), hooks_(hooks) {}
  void begin(const Action&, const Function& function) override {
    const Category category = category_of(function.name);
    if (hooks_.on_phase) hooks_.on_phase(name_of(category));
    before_ = ledger_.enter(category);
    if (hooks_.in_compute && function.name == "forward") hooks_.in_compute(step);
  }
  void end(const Action&, const Function&) override { ledger_.enter(before_); }

  std::int64_t step = 0;

 private:
  static Category category_of(std::string_view function) {
    if (function == "update") return Category::update;
    if (function == "reduce") return Category::reduce;
    if (function == "snapshot") return Category::snapshot;
    if (function == "evaluate") return Category::evaluation;
    return Category::compute;
  }
  TimeLedger& ledger_;
  const TrainHooks& hooks_;
  Category before_ = Category::other;
};

Node to_node(const TrainState& state) {
  return Node::map({{"step", state.step},
                    {"tokens", state.tokens},
                    {"skipped", state.skipped},
                    {"trained_seconds", state.trained.count()},
                    {"lowest_loss", state.lowest_loss},
                    {"cursor", state.cursor}});
}

Result<TrainState> state_from(const Node& extra) {
  TrainState state;
  state.step = TRY(TRY(extra.get("step"))->as_int(0));
  state.tokens = TRY(TRY(extra.get("tokens"))->as_int(0));
  state.skipped = TRY(TRY(extra.get("skipped"))->as_int(0));
  state.trained = Seconds(TRY(TRY(extra.get("trained_seconds"))->as_double()));
  state.lowest_loss = TRY(TRY(extra.get("lowest_loss"))->as_double());
  state.cursor = *TRY(extra.get("cursor"));
  return state;
}

Trainer::Trainer(const Job& job, Executor& executor, TrainerParts parts, TimeLedger& ledger, TrainState from)
    : job_(job),
      executor_(executor),
      parts_(std::move(parts)),
      ledger_(ledger),
      state_(std::move(from)),
      feed_(executor, ""),
      evaluation_feed_(executor, "evaluate/"),
      train_(job.program->schedule_named("train")),
      evaluate_(job.program->find_schedule("evaluate")),
      snapshot_(job.program->schedule_named("snapshot")) {
  observer_ = std::make_unique<PhaseObserver>(ledger_, parts_.hooks);
  const CheckpointSpec& spec = job.workload.checkpoint;
  checkpoint::SaveOptions options;
  options.retention = {static_cast<int>(spec.keep), spec.keep_every, spec.best};
  // A checkpoint takes the steps before it for granted, so their events are safe from a kill before it is committed.
  options.on_phase = [this](checkpoint::SavePhase phase, bool begins) {
    if (phase == checkpoint::SavePhase::commit && begins) parts_.events->flush().value();
    if (parts_.hooks.on_save_phase) parts_.hooks.on_save_phase(phase, begins);
  };
  saver_ = std::make_unique<checkpoint::AsyncSaver>(parts_.checkpoints, options, Bytes(0));
  request_.identity = {job.model->family(), parameters_hash(*job.model), numbers_hash(job.workload)};
  request_.tensors = staged_state(executor_);
  loss_ = job.program->value_named("loss");
  norm_ = job.program->value_named("norm");
  skipped_ = job.program->value_named("skipped");
  if (evaluate_ != nullptr) evaluate_loss_ = job.program->value_named("evaluate/loss");
  opened_ = parts_.clock->now();
  first_step_ = saved_step_ = last_save_step_ = last_evaluation_step_ = state_.step;
  trained_before_ = state_.trained;
}

Trainer::~Trainer() = default;

void Trainer::emit(EventBody body) { parts_.events->add(Event{parts_.clock->now() - opened_, std::move(body)}); }

double Trainer::read_scalar(int value, int slot) {
  std::byte bytes[8];
  const Type& type = job_.program->values[static_cast<std::size_t>(value)].type;
  executor_.read(value, slot, {bytes, static_cast<std::size_t>(size_of(type.dtype))}).value();
  return load(type.dtype, bytes, 0);
}

Progress Trainer::progress() const {
  const TrainSpec& train = job_.workload.train;
  Progress p;
  p.step = state_.step;
  if (train.steps) {
    p.steps_total = static_cast<double>(*train.steps);
    p.fraction = static_cast<double>(state_.step) / p.steps_total;
  } else if (train.tokens) {
    p.fraction = static_cast<double>(state_.tokens) / static_cast<double>(*train.tokens);
    p.steps_total = p.fraction > 0 ? static_cast<double>(state_.step) / p.fraction : 1e9;
  } else if (train.time) {
    p.fraction = state_.trained / *train.time;
    p.steps_total = p.fraction > 0 ? static_cast<double>(state_.step) / p.fraction : 1e9;
  }
  p.fraction = std::min(1.0, p.fraction);
  return p;
}

bool Trainer::is_over() const {
  const TrainSpec& train = job_.workload.train;
  if (train.steps) return state_.step >= *train.steps;
  if (train.tokens) return state_.tokens >= *train.tokens;
  return train.time && state_.trained >= *train.time;
}

bool Trainer::is_due(const Interval& interval, std::int64_t& last_step, Seconds& last_time) {
  const Seconds now = parts_.clock->now();
  const bool due = (interval.steps > 0 && state_.step - last_step >= interval.steps) ||
                   (interval.time > Seconds() && now - last_time >= interval.time);
  if (!due) return false;
  last_step = state_.step;
  last_time = now;
  return true;
}

Status Trainer::one_step() {
  const std::int64_t step = state_.step + 1;
  observer_->step = step;
  StepEnded ended;
  ended.step = step;
  const StepBatch* batch = nullptr;
  {
    const InCategory waiting(ledger_, Category::data_wait);
    if (parts_.hooks.on_phase) parts_.hooks.on_phase("read");
    batch = TRY(parts_.source->next());
    CHECK(batch != nullptr, "the training rows ended");
    TRY(feed_.put(*batch, parts_.vocabulary));
  }
  ended.rate = rate_at(job_.workload.train.optimizer, progress());
  ended.labels = batch->label_count;
  TRY(feed_.put_scalar("rate", ended.rate));
  TRY(feed_.put_scalar("label_count", static_cast<double>(std::max<std::int64_t>(1, batch->label_count))));
  TRY(feed_.put_scalar("seed", static_cast<double>(job_.workload.train.seed)));
  TRY(feed_.put_scalar("step", static_cast<double>(step)));
  const int microbatches = job_.program->values[static_cast<std::size_t>(loss_)].slots;
  for (int mb = 0; mb < microbatches; ++mb)
    TRY(feed_.put_scalar("row", static_cast<double>(mb * job_.microbatch_rows), mb));
  TRY(executor_.run(train_, observer_.get()));

  double sum = 0;
  for (int mb = 0; mb < microbatches; ++mb) sum += read_scalar(loss_, mb);
  ended.loss = sum / static_cast<double>(std::max<std::int64_t>(1, batch->label_count));
  ended.gradient_norm = read_scalar(norm_, 0);
  ended.skipped = read_scalar(skipped_, 0) != 0;
  state_.step = step;
  state_.tokens += batch->label_count;
  state_.skipped += ended.skipped ? 1 : 0;
  state_.trained = trained_before_ + (parts_.clock->now() - started_);
  if (std::isfinite(ended.loss) && (state_.lowest_loss == 0 || ended.loss < state_.lowest_loss))
    state_.lowest_loss = ended.loss;
  skips_in_row_ = ended.skipped ? skips_in_row_ + 1 : 0;
  ended.tokens = state_.tokens;
  const InCategory logging(ledger_, Category::logging);
  if (parts_.hooks.in_logging) parts_.hooks.in_logging(step);
  ended.seconds = ledger_.take_interval();
  last_ = ended;
  emit(ended);
  return {};
}

Status Trainer::finish_save(bool wait) {
  if (saving_step_ < 0) return {};
  const InCategory waiting(ledger_, Category::checkpoint);
  std::optional<checkpoint::SaveReport> report = TRY(wait ? saver_->wait() : saver_->poll());
  if (!report) return {};
  saved_step_ = saving_step_;
  saving_step_ = -1;
  CheckpointSaved event;
  event.step = report->step;
  event.id = std::to_string(report->step);
  event.bytes = report->stats.written;
  event.snapshot = snapshot_time_;
  event.write = parts_.clock->now() - write_began_;
  emit(std::move(event));
  for (const std::int64_t removed : report->swept.removed) emit(CheckpointRemoved{removed, std::to_string(removed)});
  if (report->sweep_error)
    emit(systole::Note{
        "warning", "old checkpoints were not tidied up: " + report->sweep_error->message, "checkpoint", {}});
  return {};
}

// The step's thread copies; another writes. A save that would overtake the one before waits for it.
Status Trainer::save(bool wait) {
  TRY(finish_save(true));
  const Seconds before = parts_.clock->now();
  if (parts_.hooks.on_save_phase) parts_.hooks.on_save_phase(checkpoint::SavePhase::snapshot, true);
  TRY(executor_.run(snapshot_, observer_.get()));
  if (parts_.hooks.on_save_phase) parts_.hooks.on_save_phase(checkpoint::SavePhase::snapshot, false);
  snapshot_time_ = parts_.clock->now() - before;
  state_.cursor = parts_.source->cursor();
  request_.step = state_.step;
  request_.date = parts_.clock->timestamp();
  request_.metric = best_metric_;
  request_.extra = to_node(state_);
  request_.extra.set("numerics", parts_.numerics);
  write_began_ = parts_.clock->now();
  {
    const InCategory starting(ledger_, Category::checkpoint);
    if (parts_.hooks.in_checkpoint) parts_.hooks.in_checkpoint(state_.step);
    TRY(saver_->begin_in_place(request_));
  }
  saving_step_ = state_.step;
  return wait ? finish_save(true) : Status();
}

Result<Evaluated> Trainer::evaluate(std::int64_t batches) {
  const InCategory evaluating(ledger_, Category::evaluation);
  CHECK(evaluate_ != nullptr && parts_.held_out, "nothing is held out");
  std::unique_ptr<BatchSource> rows = TRY(parts_.held_out());
  Evaluated result;
  result.step = state_.step;
  double sum = 0;
  for (std::int64_t b = 0; batches == 0 || b < batches; ++b) {
    const StepBatch* batch = TRY(rows->next());
    if (batch == nullptr) break;
    TRY(evaluation_feed_.put(*batch, parts_.vocabulary));
    TRY(executor_.run(*evaluate_, observer_.get()));
    sum += read_scalar(evaluate_loss_, 0);
    result.labels += batch->label_count;
    result.bytes += batch->bytes;
  }
  result.loss = sum / static_cast<double>(std::max<std::int64_t>(1, result.labels));
  if (result.bytes > 0) result.bits_per_byte = sum / std::numbers::ln2 / static_cast<double>(result.bytes);
  return result;
}

Result<TrainOutcome> Trainer::run() {
  const InCategory rest(ledger_, Category::other);
  TrainOutcome outcome;
  started_ = last_save_time_ = last_evaluation_time_ = parts_.clock->now();
  const Workload& workload = job_.workload;
  const bool evaluates = evaluate_ != nullptr && parts_.held_out;
  (void)ledger_.take_interval();
  while (!is_over()) {
    if (parts_.stop_requested && parts_.stop_requested()) {
      outcome.ending = Ending::stopped;
      break;
    }
    TRY(one_step());
    if (std::optional<std::string> why = divergence_of(workload.train, *last_, state_.lowest_loss, skips_in_row_)) {
      outcome.ending = Ending::diverged;
      outcome.detail = std::move(*why);
      break;
    }
    TRY(finish_save(false));
    if (evaluates && is_due(workload.train.evaluate, last_evaluation_step_, last_evaluation_time_)) {
      const Evaluated evaluated = TRY(evaluate(workload.train.evaluate_batches));
      best_metric_ = evaluated.loss;
      emit(evaluated);
    }
    if (is_due(workload.checkpoint.every, last_save_step_, last_save_time_)) TRY(save(false));
  }
  TRY(finish_save(true));
  if (outcome.ending == Ending::finished && evaluates) {
    outcome.evaluation = TRY(evaluate(0));
    best_metric_ = outcome.evaluation->loss;
    emit(*outcome.evaluation);
  }
  if (outcome.ending != Ending::diverged && saved_step_ != state_.step) TRY(save(true));
  outcome.saved = saved_step_ == state_.step;
  outcome.state = state_;
  return outcome;
}

}  // namespace systole
