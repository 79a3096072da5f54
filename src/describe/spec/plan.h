#pragma once
// The Plan (plan.json): what was chosen for a Workload and what it is predicted to take, written before anything is
// spent. `run --plan` builds the Program again and compares hashes; `why` holds it against the Run.
//
//   {"systole_plan":1,"workload":{...},"target":{...},"mesh":{...},"program":{...},"memory":{...},"time":{...},...}
//
// A plan for hardware that is offered has "cost" besides, and "search": all that the choice was made from, which
// read_plan passes over.

#include <cstdint>
#include <map>
#include <optional>
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

// What the Program was made for, as recorded: name and the facts that decided its form.
struct PlannedTarget {
  std::string name;                          // "cpu(avx512_bf16, 2 threads)"
  std::map<std::string, std::string> facts;  // alignment, fusions, instruction set, library versions
  std::string catalog_entry, catalog_date, catalog_hash;
  bool calibrated = false;  // times come from a measurement of this machine
};

struct PlannedProgram {
  std::string hash;  // of functions, actions and arena
  std::int64_t actions = 0, devices = 1;
  std::int64_t parameters = 0;            // numbers in all
  std::int64_t trainable = 0;             // of these, trained
  Flops model_flops{}, executed_flops{};  // a step, all microbatches; model: no recompute
  Bytes moved{}, sent{};                  // a step
};

// Bytes with one owner each; they sum to `total`.
struct PlannedMemory {
  std::vector<std::pair<std::string, Bytes>> by_owner;  // largest first: parameters, state, residuals, ...
  Bytes arena{};                                        // what is planned as one arena, part of the sum
  Bytes limit{};                                        // it was held against
  Bytes total() const;
};

struct PlannedTime {
  TimeByCategory step;                                           // one training step
  TimeByCategory run;                                            // the whole run, everything included
  std::vector<std::pair<std::string, Seconds>> compute_by_kind;  // of a step: contractions, attention, ...
  double steps = 0;                                              // predicted number of steps
  double known_error = 0;              // relative, of predictions of this kind; 0: not known yet
  std::optional<std::string> unknown;  // why no time could be predicted: all are 0, and so are steps that time decides
};

// Of hardware that is rented: what of, and what the whole run costs at the price of that day.
struct PlannedCost {
  std::string offer, on;  // "8 x a3-highgpu-8g (64 h100)"; what --on takes for it
  std::string provisioning, zone, price_date;
  double dollars_per_hour = 0, dollars = 0;  // `known` is false: nobody knows
  bool known = false;
};

// An option that lost: why, and the edit that would change it.
struct PlannedLoser {
  std::string option, reason, edit;
};

struct Plan {
  Workload workload;
  PlannedTarget target;
  std::vector<std::pair<std::string, std::int64_t>> mesh;
  std::string strategy;  // "one device"
  PlannedProgram program;
  PlannedMemory memory;
  PlannedTime time;
  std::optional<PlannedCost> cost;  // nothing: of this machine
  double model_utilisation = 0;     // model flops / (step time × measured rate or peak); 0: not known
  std::vector<PlannedLoser> lost;
  std::string made_by, made_at;  // version of Systole; calendar, ISO 8601 UTC
};

std::string to_json(const Plan& plan);
// Errors: corrupt (no JSON, a field missing or of the wrong type, owners that do not sum up); unsupported (a newer
// version, by name); invalid (its workload does not read).
Result<Plan> read_plan(std::string_view text, const std::string& filename);

}  // namespace systole
