#include "operate/check/lint.h"

#include <fmt/format.h>

#include <iterator>

namespace systole {
namespace {

using Found = std::vector<Lint>;

bool has_held_out(const Workload& w) {
  if (w.data.kind == DataSpec::Kind::linear) return w.data.held_out_rows > 0;
  return !w.data.held_out.files.empty() || w.data.held_out_fraction > 0;
}

void held_out(const Workload& w, Found& found) {
  if (has_held_out(w)) return;
  found.push_back({"no_held_out", "data.held_out", "nothing is held out: nobody will know how well it generalises",
                   "data.held_out: { fraction: 5% }, or files of their own"});
}

void best_without_evaluation(const Workload& w, Found& found) {
  if (!w.checkpoint.best || (has_held_out(w) && !w.train.evaluate.never())) return;
  found.push_back({"best_without_evaluation", "checkpoint.best",
                   "the best checkpoint is kept, but nothing measures which is best", "train.evaluate: 100 steps"});
}

void checkpoint_never(const Workload& w, Found& found) {
  if (!w.checkpoint.every.never()) return;
  found.push_back({"checkpoint_never", "checkpoint.every", "a kill loses all of the run: it is saved at its end alone",
                   "checkpoint.every: 10min"});
}

void ragged_microbatches(const Workload& w, Found& found) {
  if (w.train.microbatches <= 1 || w.train.batch % w.train.microbatches == 0) return;
  const std::int64_t rows = (w.train.batch + w.train.microbatches - 1) / w.train.microbatches;
  found.push_back({"ragged_microbatches", "train.microbatches",
                   fmt::format("{} rows in {} microbatches of {}: {} rows of work are empty", w.train.batch,
                               w.train.microbatches, rows, rows * w.train.microbatches - w.train.batch),
                   "let train.microbatches divide train.batch"});
}

void high_rate(const Workload& w, Found& found) {
  if (w.train.optimizer.clip > 0 || w.train.optimizer.kind != OptimizerSpec::Kind::adamw ||
      w.train.optimizer.rate < 0.02)
    return;
  found.push_back({"high_rate", "train.optimizer.rate",
                   fmt::format("{:g} is high for adamw, and gradients are not clipped", w.train.optimizer.rate),
                   "train.optimizer: { rate: 3e-4 … 3e-3, clip: 1 }"});
}

constexpr void (*kRules[])(const Workload&, Found&) = {held_out, best_without_evaluation, checkpoint_never,
                                                       ragged_microbatches, high_rate};

}  // namespace

std::vector<Lint> lint(const Workload& workload) {
  Found found;
  for (const auto& rule : kRules) rule(workload, found);
  return found;
}

}  // namespace systole
