#include "operate/cli/progress_lines.h"

#include <algorithm>
#include <cmath>

namespace systole::cli {

double ProgressLines::fraction(std::int64_t step, std::int64_t tokens, Seconds trained) const {
  const TrainSpec& train = plan_.workload.train;
  double done = 0;
  if (train.steps) done = static_cast<double>(step) / static_cast<double>(*train.steps);
  if (train.tokens) done = static_cast<double>(tokens) / static_cast<double>(*train.tokens);
  if (train.time) done = trained / *train.time;
  return std::min(1.0, done);
}

void ProgressLines::begin(std::int64_t step, std::int64_t tokens, Seconds trained) {
  begun_ = fraction(step, tokens, trained);
  trained_ = trained;
}

std::string ProgressLines::left(double done, Seconds at) const {
  if (done >= 1 || done <= begun_) return "";
  const Seconds left = at * ((1 - done) / (done - begun_));
  if (left < Seconds(1.0)) return "  under 1 s left";
  return fmt::format("  {} left", to_string(left < Seconds(10.0) ? left : Seconds(std::round(left.count()))));
}

void ProgressLines::step(const StepEnded& step, Seconds at) {
  shown_loss_ = shown_loss_ == 0 ? step.loss : 0.9 * shown_loss_ + 0.1 * step.loss;
  // train.time counts only steps, not the evaluations and saves between them.
  const TimeByCategory& spent = step.seconds;
  trained_ += spent.total() - spent[Category::evaluation] - spent[Category::snapshot] - spent[Category::checkpoint];
  const double done = fraction(step.step, step.tokens, trained_);
  const std::string line = fmt::format("step {}  loss {:.4f}  norm {:.3g}  rate {:.3g}{}  {}  {:.0f}%{}{}", step.step,
                                       shown_loss_, step.gradient_norm, step.rate,
                                       step.dropped ? fmt::format("  dropped {:.1f}%", 100 * *step.dropped) : "",
                                       to_string(step.seconds.total()), std::floor(100 * done), left(done, at),
                                       step.skipped ? "  SKIPPED: the gradient is not finite" : "");
  if (step.skipped && !told_of_skip_) {
    told_of_skip_ = true;
    out_.warning(fmt::format("step {} was skipped: its gradient is not finite; the weights are as before", step.step),
                 "systole run or resume with --eager names the first value that is no number");
  }
  if (out_.terminal()) {
    out_.progress(line);
  } else if (step.step % std::max<std::int64_t>(1, every_) == 0 || step.step == 1) {
    out_.message(line);
  }
}

void ProgressLines::see(const Event& event) {
  if (const auto* s = std::get_if<StepEnded>(&event.body)) step(*s, event.t);
  if (const auto* e = std::get_if<Evaluated>(&event.body)) {
    std::string sources;
    for (const auto& [name, loss] : e->source_losses.value_or(std::vector<std::pair<std::string, double>>()))
      sources += fmt::format("{}{} {:.4f}", sources.empty() ? " (" : ", ", name, loss);
    if (!sources.empty()) sources += ")";
    out_.message(std::isnan(e->loss)
                     ? fmt::format("step {}: the held-out loss is no number", e->step)
                     : fmt::format("step {}: held-out loss {:.4f}{}{}", e->step, e->loss, sources,
                                   e->bits_per_byte ? fmt::format(", {:.4f} bits per byte", *e->bits_per_byte) : ""));
  }
  if (const auto* c = std::get_if<CheckpointSaved>(&event.body)) {
    out_.message(
        fmt::format("step {}: checkpoint, {} written in {}", c->step, to_string(c->bytes), to_string(c->write)));
  }
  if (const auto* n = std::get_if<Note>(&event.body); n != nullptr && n->what != "kernels")
    out_.message(n->level + ": " + n->text);
}

}  // namespace systole::cli
