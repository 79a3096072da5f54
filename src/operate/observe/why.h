#pragma once
// Why a run took what it took: the plan's predictions beside what its events say, category by category. Every second of
// every process is in exactly one category; `other` is what no category claims and is shown as such. A process that was
// killed left no total: its seconds are those of its steps and of the spans that it left after the last of them.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "describe/spec/plan.h"
#include "describe/spec/run.h"
#include "ground/base/document.h"
#include "ground/base/telemetry.h"

namespace systole {

struct WhyRow {
  Category category = Category::other;
  Seconds predicted{}, measured{};
  std::string cause;  // what the notes or the steps say about it: "50 of 200 steps stalled, ..."; empty for nothing
};

struct WhyReport {
  std::string run;
  std::string state;      // how its last process ended: finished, stopped, diverged, error, open
  std::string detail;     // of a divergence or error
  std::string last_seen;  // of a last process that left no end: "in compute of step 42, 12.3 s after it opened the run"
  std::int64_t processes = 0, killed = 0;
  std::int64_t steps = 0;
  double planned_steps = 0;
  Seconds wall{};                      // sum of the rows' measured
  std::vector<WhyRow> rows;            // categories with any time, in Category's order, `other` last
  bool calibrated = false;             // the predictions rest on a measurement of this machine
  std::optional<std::string> unknown;  // why no time was predicted

  std::int64_t counted_steps = 0;
  Flops planned_flops{}, counted_flops{};  // of the counted steps
  Bytes planned_arena{}, measured_arena{}, planned_memory{}, resident{};
  std::vector<std::pair<std::string, Seconds>> compute_by_kind;   // predicted, of a step
  std::vector<std::pair<std::string, Seconds>> measured_by_kind;  // of a counted step; empty where nobody measured
  // Model FLOPs over compute and update time, over the rate that a matmul was measured at here; only when calibrated.
  std::optional<double> matmul_ratio;
  std::string withheld;  // instead, when it would be above all of that rate: both inputs; one of them is wrong
  std::optional<double> loss, bits_per_byte;
  std::vector<Note> notes;  // warnings and errors that no row tells
};

// REQUIRES: `processes` and `spans` as RunRecord has them; spans may be fewer.
WhyReport why(const Plan& plan, const std::vector<std::vector<Event>>& processes,
              const std::vector<std::vector<Span>>& spans = {});

std::string to_text(const WhyReport& report);
Node to_node(const WhyReport& report);

}  // namespace systole
