#pragma once
// Predicts the cost of a Program on a machine: the time of each schedule by op class and by function, memory by owner,
// FLOPs. Reads the same Program that the runtime executes; deterministic.

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "describe/program/program.h"
#include "predict/perf/op_time.h"

namespace systole {

struct ScheduleEstimate {
  std::string name;  // "train": one step
  Seconds time;      // from its start to the end of its last action; streams run in parallel
  TimeByClass busy;  // sum over the actions of all streams
  std::vector<std::pair<std::string, Seconds>> by_function;  // sum of its actions' durations, in the Program's order
  Work work;                                                 // model_flops: without recomputation; flops: executed
  std::optional<DType> matmul_type;  // of the contractions with most FLOPs; empty without contractions
};

struct Estimate {
  std::string machine;  // name of the MachineSpeed
  bool calibrated = false;
  std::optional<std::string> unknown;  // why times are unknown (a missing rate); all are then zero
  std::vector<ScheduleEstimate> schedules;
  MemoryByOwner memory;
  Bytes arena;
  std::vector<Seconds> of_functions;  // one action of each function of the Program

  // Errors: Failure(not_found).
  const ScheduleEstimate& schedule_named(std::string_view name) const;
};

// Bytes touched between two runs of a function: by all functions of its schedule; of several schedules, the one that
// touches most.
Bytes touched_between(const Program& program, int function);

// If the machine lacks a rate that the Program needs, all times are unknown; the rest is filled in.
// Errors: Failure(invalid) as check(speed).
Estimate estimate(const Program& program, const MachineSpeed& speed);

// Model FLOPs of the schedule per second of predicted time, as a fraction of the machine's matmul rate. Errors: as
// utilisation; not_found if the schedule has no contractions, its time is unknown, or the machine has no rate for their
// type.
Result<double> matmul_ratio(const ScheduleEstimate& schedule, const MachineSpeed& speed);

}  // namespace systole
