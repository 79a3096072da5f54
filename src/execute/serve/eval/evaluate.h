#pragma once
// Runs a task of a suite (suite.h) on a model, and measures.
//
// Metrics, as lm-evaluation-harness defines them:
//   acc              the likeliest choice is the right one; acc_norm: by log likelihood per character of the choice,
//                    acc_bytes: per byte of it. Among equals the first counts.
//   exact_match      the greedy answer, or the part that `pattern` takes out of it, is the target, but for white space
//                    around either
//   bits_per_byte    -Σ log2 likelihood / Σ bytes over all texts; byte_perplexity, word_perplexity: e^(-Σ ln likelihood /
//                    Σ bytes, or Σ words)
//   score            what the judge gives the greedy answer, the mean; where it gives nothing, the lowest score counts
//   refused          the share of answers to which it gives nothing
//   pass@1, pass@k   the chance that a program passes, or one of k (programs.h)

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "execute/data/tokenizer.h"
#include "execute/serve/engine.h"
#include "execute/serve/eval/statistics.h"
#include "execute/serve/eval/suite.h"
#include "ground/base/clock.h"
#include "ground/base/document.h"

namespace systole {

struct EvalModel {
  Engine& engine;  // with `score` and `generates` as the suite needs them
  const Tokenizer& tokenizer;
  std::vector<std::int32_t> before;  // as ServedModel has them
  std::vector<std::int32_t> ends;
  std::vector<std::int32_t> never;
  std::function<std::vector<std::int32_t>(std::string_view)> prompt_of;
  Clock* clock = nullptr;       // for a task of kind judge
  RunProgram run_program = {};  // for one of kind pass_at_k
};

struct TaskScores {
  std::vector<Metric> metrics = {};  // those of metrics_of, in their order
  std::vector<Node> samples = {};    // a map for each item: what was asked and answered
  std::int64_t cut_contexts = 0;     // items whose context was too long, and lost its beginning
  // Items that count as wrong because nothing can be said of them, "item 3: …": a choice has more tokens than the
  // model's context, the search for the pattern takes too many steps, or a judge gives no score.
  std::vector<Error> unjudged = {};
  // Why there are no metrics, and samples of the first items alone: the judge does not answer any more.
  std::optional<Error> ended = {};
};

// Is told how many items are done; false ends the evaluation (interrupted).
using OnItems = std::function<bool(std::size_t)>;

// For all tasks of a suite before the first is run. Errors: invalid: the task's answers leave no room for a prompt.
Status check_room(const EvalTask& task, const Engine& engine);

// Errors: those of check_room, of the device, of Judge::open and of run_program; invalid: weights that are damaged; interrupted.
Result<TaskScores> evaluate(const EvalTask& task, const EvalModel& model, const OnItems& told);

}  // namespace systole
