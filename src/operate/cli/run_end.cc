#include "operate/cli/run_end.h"

#include <cmath>

#include "ground/base/counted.h"
#include "operate/render/quote.h"

namespace systole::cli {

void tell_end(const TrainOutcome& outcome, const Workload& workload, const std::string& result,
              const std::string& folder, const std::string& again, Context& context, const std::optional<Node>& cache) {
  Node fields = Node::map({{"folder", folder},
                           {"step", outcome.state.step},
                           {"tokens", outcome.state.tokens},
                           {"skipped", outcome.state.skipped},
                           {"saved", outcome.saved},
                           {"budget_used", outcome.budget_used}});
  const bool evaluated = outcome.evaluation && std::isfinite(outcome.evaluation->loss);
  if (evaluated) {
    fields.set("held_out_loss", outcome.evaluation->loss);
    if (outcome.evaluation->bits_per_byte) fields.set("bits_per_byte", *outcome.evaluation->bits_per_byte);
  }
  const char* ending = outcome.ending == Ending::finished  ? "finished"
                       : outcome.ending == Ending::stopped ? "stopped"
                                                           : "diverged";
  fields.set("ending", ending);
  if (cache) fields.set("data_cache", *cache);
  if (!result.empty()) fields.set("result", result);
  context.out.json(fields);
  const char* const unit = workload.data.kind == DataSpec::Kind::text ? "token" : "row";
  std::string text =
      fmt::format("{} at step {}, {} seen", ending, outcome.state.step, counted(outcome.state.tokens, unit));
  if (evaluated && outcome.evaluation->bits_per_byte)
    text += fmt::format("; {:.4f} bits per byte on held-out text", *outcome.evaluation->bits_per_byte);
  context.out.prose(text);
  if (!result.empty()) context.out.data("result " + result);
  if (!outcome.detail.empty()) context.out.prose(outcome.detail);
  if (outcome.budget_used) {
    context.out.data("its budget is used");
    context.out.message(
        fmt::format("next: systole resume {} --set objective.budget=DOLLARS{}", shell_word(folder), again));
  } else if (outcome.ending == Ending::stopped) {
    context.out.message("next: systole resume " + shell_word(folder) + again);
  } else if (outcome.ending == Ending::finished) {
    context.out.message("next: systole why " + shell_word(folder));
  }
}

}  // namespace systole::cli
