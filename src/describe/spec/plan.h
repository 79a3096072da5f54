#pragma once
// The Plan (plan.json): what was chosen for a Workload, with its predicted time, memory and cost, written before
// anything is spent. `run --plan` builds the Program again and compares hashes; `why` compares the Plan with the Run.
//
//   {"systole_plan":1,"workload":{...},"target":{...},"mesh":{...},"program":{...},"memory":{...},"time":{...},...}
//
// A plan for rented hardware also has "cost", and "search", the candidates of the choice, which read_plan ignores.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "describe/spec/run.h"
#include "describe/spec/workload.h"
#include "ground/base/result.h"
#include "ground/base/units.h"

namespace systole {

constexpr int kPlanVersion = 1;

// The target that the Program was built for: its name and the facts that determined the Program.
struct PlannedTarget {
  std::string name;                          // "cpu(avx512_bf16, 2 threads)"
  std::map<std::string, std::string> facts;  // alignment, fusions, instruction set, library versions
  std::string catalog_entry, catalog_date, catalog_hash;
  bool calibrated = false;  // times come from a measurement of this machine
};

struct PlannedProgram {
  std::string hash;  // over functions, actions and arena
  std::int64_t actions = 0, devices = 1;
  std::int64_t parameters = 0;            // total elements
  std::int64_t trainable = 0;             // trainable elements among them
  Flops model_flops{}, executed_flops{};  // per step, all microbatches; model: without recompute
  Bytes moved{}, sent{};                  // per step
};

// Steps of rows of one length, where data.buckets has several; each is a program of its own. The numbers of
// PlannedProgram and PlannedTime are then the mean of a step over an epoch.
struct PlannedShape {
  std::int64_t length = 0, rows = 0;               // of a row; of a step
  std::int64_t epoch_steps = 0, epoch_tokens = 0;  // of an epoch, tokens without padding; 0: not known yet
  Seconds step{};                                  // 0: unknown
  Flops model_flops{}, executed_flops{};           // of a step, as PlannedProgram
  Bytes moved{}, sent{};
};
// The share of steps that each shape has; where steps are not known, all are of the last, the longest.
std::vector<double> step_shares(std::span<const PlannedShape> shapes);

// Bytes by owner, each byte counted once; `total` is their sum.
struct PlannedMemory {
  std::vector<std::pair<std::string, Bytes>> by_owner;  // largest first: parameters, state, residuals, ...
  Bytes arena{};                                        // size of the one planned arena, part of the sum
  Bytes limit{};                                        // the limit it was checked against
  Bytes total() const;
};

struct PlannedTime {
  TimeByCategory step;                                           // one training step
  TimeByCategory run;                                            // the whole run, everything included
  std::vector<std::pair<std::string, Seconds>> compute_by_kind;  // of a step: contractions, attention, ...
  double steps = 0;                                              // predicted number of steps
  double known_error = 0;                                        // relative error of such predictions; 0: not known yet
  std::optional<std::string> unknown;  // why no time is predicted: times are 0, and `steps` if it depends on them
};

// Rows for training, from shards: what the devices take and what the reader gives.
struct PlannedFeed {
  std::int64_t rows = 0;                // of a step
  double row_bytes = 0;                 // of shards
  std::optional<std::int64_t> nodes;    // machines that each read all rows; nothing: one
  double rows_per_second = 0;           // that the devices take; 0: the time of a step is unknown
  double given = 0;                     // rows a second that the reader gives; 0: unknown
  std::int64_t readers = 1, queue = 3;  // threads; batches
  double processor_share = 0;           // that the threads take, in cores
  Seconds wait{};                       // of a step, for rows; also in the plan's time
  std::string source;                   // of `given`
  std::string remedy;                   // an edit, if it waits
  std::optional<std::string> unknown;   // why nothing is compared
};

// Rented hardware: the offer, and the cost of the whole run at the price of `price_date`.
struct PlannedCost {
  std::string offer, on;  // "8 x a3-highgpu-8g (64 h100)"; the value for --on
  std::string provisioning, zone, price_date;
  DollarsPerHour dollars_per_hour;
  Dollars dollars;     // of the whole run
  bool known = false;  // false: price and cost are unknown, both are 0
};

// A rejected option: the reason, and the edit that would change it.
struct PlannedLoser {
  std::string option, reason, edit;
};

struct Plan {
  Workload workload;
  PlannedTarget target;
  std::vector<std::pair<std::string, std::int64_t>> mesh;
  std::string strategy;  // "one device"
  PlannedProgram program;
  std::vector<PlannedShape> shapes;  // by length, ascending; empty: rows of one length
  PlannedMemory memory;
  PlannedTime time;
  std::optional<PlannedCost> cost;  // nothing: runs on this machine
  std::optional<PlannedFeed> feed;  // nothing: not rows of text
  double model_utilisation = 0;     // model flops / (step time × measured rate or peak); 0: not known
  std::vector<PlannedLoser> lost;
  std::string made_by, made_at;  // version of Systole; date and time, ISO 8601 UTC
};

Node to_node(const Plan& plan);
std::string to_json(const Plan& plan);  // the same as indented text, with a final newline
// Errors: corrupt (no JSON, a field missing or of the wrong type, owners that do not sum up); unsupported (a newer
// version, by name); invalid (its workload is invalid).
Result<Plan> read_plan(std::string_view text, const std::string& filename);

}  // namespace systole
