#include "operate/cli/progress_lines.h"

#include <algorithm>

namespace systole::cli {

double ProgressLines::fraction(const StepEnded& step, Seconds at) const {
  const TrainSpec& train = plan_.workload.train;
  if (train.steps) return static_cast<double>(step.step) / static_cast<double>(*train.steps);
  if (train.tokens) return static_cast<double>(step.tokens) / static_cast<double>(*train.tokens);
  return train.time ? std::min(1.0, at / *train.time) : 0;
}

void ProgressLines::step(const StepEnded& step, Seconds at) {
  shown_loss_ = shown_loss_ == 0 ? step.loss : 0.9 * shown_loss_ + 0.1 * step.loss;
  const double done = fraction(step, at);
  const Seconds left = done > 0 ? at * ((1 - done) / done) : Seconds();
  const std::string line =
      fmt::format("step {}  loss {:.4f}  norm {:.3g}  rate {:.3g}  {}  {:.0f}%  {} left{}", step.step, shown_loss_,
                  step.gradient_norm, step.rate, to_string(step.seconds.total()), 100 * done, to_string(left),
                  step.skipped ? "  SKIPPED: the gradient is not finite" : "");
  if (out_.terminal()) {
    out_.progress(line);
  } else if (step.step % std::max<std::int64_t>(1, every_) == 0 || step.step == 1) {
    out_.message(line);
  }
}

void ProgressLines::see(const Event& event) {
  if (const auto* s = std::get_if<StepEnded>(&event.body)) step(*s, event.t);
  if (const auto* e = std::get_if<Evaluated>(&event.body)) {
    out_.message(fmt::format("step {}: held-out loss {:.4f}{}", e->step, e->loss,
                             e->bits_per_byte ? fmt::format(", {:.4f} bits per byte", *e->bits_per_byte) : ""));
  }
  if (const auto* c = std::get_if<CheckpointSaved>(&event.body)) {
    out_.message(
        fmt::format("step {}: checkpoint, {} written in {}", c->step, to_string(c->bytes), to_string(c->write)));
  }
  if (const auto* n = std::get_if<Note>(&event.body)) out_.message(n->level + ": " + n->text);
}

}  // namespace systole::cli
