// The trainer's evaluations: passes over the held-out rows. A device that runs ahead starts the next rows before the
// loss of the current ones is read.

#include <numbers>

#include "execute/train/phase_observer.h"
#include "execute/train/trainer.h"

namespace systole {
namespace {

struct LossOfSource {
  double sum = 0;
  std::int64_t labels = 0;
  void add(double total, std::int64_t count) {
    sum += total;
    labels += count;
  }
  double mean() const { return sum / static_cast<double>(labels); }
};
using LossesBySource = std::vector<LossOfSource>;

}  // namespace

// Starts the next rows of a pass. False: there are none.
Result<bool> Trainer::start_evaluation(BatchSource& rows, StartedEvaluation& started) {
  const StepBatch* batch = TRY(rows.next());
  if (batch == nullptr) return false;
  TRY(evaluation_feed_.put(*batch, parts_.vocabulary));
  TRY(shapes_.back().feed.put_coordinates());
  started.labels = batch->label_count;
  started.bytes = batch->bytes;
  if (ahead_) {
    executor_.start_run(*evaluate_, observer_.get(), started.in_flight.actions);
    read_ahead(started.in_flight, std::span(&evaluate_loss_, 1));
  } else {
    TRY(executor_.run(*evaluate_, observer_.get()));
  }
  return true;
}

Result<Evaluated> Trainer::evaluate(std::int64_t batches) {
  const InCategory evaluating(ledger_, Category::evaluation);
  CHECK(evaluate_ != nullptr && parts_.held_out, "nothing is held out");
  std::unique_ptr<BatchSource> rows = TRY(parts_.held_out());
  Evaluated result;
  result.step = state_.step;
  // The final evaluation takes all rows. Its checkpoint is compared on the rows that the others were measured on.
  const std::int64_t compared = job_.workload.train.evaluate_batches;
  const auto mean = [&result](double total) {
    return total / static_cast<double>(std::max<std::int64_t>(1, result.labels));
  };
  evaluated_step_ = state_.step;
  evaluated_loss_.reset();
  double sum = 0;
  LossesBySource by_source(parts_.held_out_names.size());
  std::int64_t asked = 0;
  const auto start_next = [&]() -> Result<bool> {
    if (batches > 0 && asked == batches) return false;
    return start_evaluation(*rows, evaluations_[static_cast<std::size_t>(asked++ % 2)]);
  };
  bool started = TRY(start_next());
  for (std::int64_t b = 0; started; ++b) {
    StartedEvaluation& one = evaluations_[static_cast<std::size_t>(b % 2)];
    const bool next = ahead_ && TRY(start_next());
    TRY(wait_for(one.in_flight));
    const double total = taken(one.in_flight, 0, evaluate_loss_);
    sum += total;
    if (!by_source.empty()) by_source[parts_.held_out_batches[static_cast<std::size_t>(b)]].add(total, one.labels);
    result.labels += one.labels;
    result.bytes += one.bytes;
    if (b + 1 == compared) evaluated_loss_ = mean(sum);
    started = ahead_ ? next : TRY(start_next());
  }
  result.loss = mean(sum);
  if (!evaluated_loss_) evaluated_loss_ = result.loss;
  for (std::size_t s = 0; s < by_source.size(); ++s) {
    if (by_source[s].labels == 0) continue;
    if (!result.source_losses) result.source_losses.emplace();
    result.source_losses->emplace_back(parts_.held_out_names[s], by_source[s].mean());
  }
  if (result.bytes > 0) result.bits_per_byte = sum / std::numbers::ln2 / static_cast<double>(result.bytes);
  return result;
}

}  // namespace systole
