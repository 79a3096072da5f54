#pragma once
// Explains a run's time: the plan's predictions beside the measurements from its events, by category. Every second of
// every process is in exactly one category; `other` is time that no category claims. A killed process left no total:
// its time is that of its steps and of the spans after the last step.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "describe/spec/plan.h"
#include "describe/spec/run.h"
#include "describe/spec/run_state.h"
#include "ground/base/document.h"
#include "ground/base/telemetry.h"

namespace systole {

struct WhyRow {
  Category category = Category::other;
  Seconds predicted{}, measured{};
  std::string cause;  // from the notes or the steps: "50 of 200 steps stalled, ..."; empty: none
};

struct WhyReport {
  std::string run;
  // By its events alone, so `running` if its last process recorded no end (state_with).
  RunState state = RunState::running;
  std::string detail;     // of a divergence or error
  std::string last_seen;  // of a last process without an end: "in compute of step 42, 12.3 s after it opened the run"
  std::int64_t processes = 0, killed = 0;
  std::int64_t steps = 0;
  double planned_steps = 0;
  Seconds wall{};                      // sum of the rows' measured times
  std::vector<WhyRow> rows;            // categories with any time, in the order of Category; `other` is last
  bool calibrated = false;             // the predictions use measurements of this machine
  std::optional<std::string> unknown;  // why no time was predicted

  std::int64_t counted_steps = 0;
  Flops planned_flops{}, counted_flops{};  // for the counted steps
  Bytes planned_arena{}, measured_arena{}, planned_memory{}, resident{};
  std::vector<std::pair<std::string, Seconds>> compute_by_kind;   // predicted, per step
  std::vector<std::pair<std::string, Seconds>> measured_by_kind;  // per counted step; empty if not measured
  std::vector<std::pair<std::string, Seconds>> waits_by_stage;    // of data_wait, measured; empty if not counted
  // Model FLOP rate over compute and update time, divided by the matmul rate measured here; only if calibrated.
  std::optional<double> matmul_ratio;
  std::string withheld;  // instead of a ratio above 1: both inputs, one of which is wrong
  std::optional<double> loss, bits_per_byte;
  std::vector<Note> notes;  // warnings and errors that are in no row
};

// REQUIRES: `processes` and `spans` as in RunRecord; there may be fewer spans.
WhyReport why(const Plan& plan, const std::vector<std::vector<Event>>& processes,
              const std::vector<std::vector<Span>>& spans = {});

std::string to_text(const WhyReport& report);
Node to_node(const WhyReport& report);

}  // namespace systole
