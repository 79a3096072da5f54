#pragma once
// What a Program is predicted to take on a machine: time by class of op and by function for each of its schedules,
// memory by owner, FLOPs. Reads the same Program that the runtime executes; deterministic.

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "describe/graph/program.h"
#include "predict/perf/op_time.h"

namespace systole {

struct ScheduleEstimate {
  std::string name;  // "train": one step
  Seconds time;      // from its start to the end of its last action; streams run side by side
  TimeByClass busy;  // of all actions, whatever their stream
  std::vector<std::pair<std::string, Seconds>>
      by_function;                   // from begin to end of each function's actions, in the Program's order
  Work work;                         // model_flops: without anything done twice; flops: executed
  std::optional<DType> matmul_type;  // of the contractions with most FLOPs; none without contractions
};

struct Estimate {
  std::string machine;  // of the MachineSpeed
  std::string speed_source;
  bool calibrated = false;
  std::optional<std::string> unknown;  // why nothing is known of times, which are all zero then: a rate is missing
  std::vector<ScheduleEstimate> schedules;
  MemoryByOwner memory;
  Bytes arena;

  // Errors: Failure(not_found).
  const ScheduleEstimate& schedule_named(std::string_view name) const;
};

// Bytes that are touched from one run of a function to the next: by all functions of the schedule that it acts in, of
// several the one that touches most.
Bytes touched_between(const Program& program, int function);

// Where the machine has no rate for something that the Program does, its times are unknown; all else is told.
// Errors: Failure(invalid) as check(speed).
Estimate estimate(const Program& program, const MachineSpeed& speed);

// Model FLOPs of the schedule over its predicted time, against the machine's matmul rate. Errors: as utilisation;
// not_found when the schedule has no contractions, or its time is not known.
Result<double> matmul_ratio(const ScheduleEstimate& schedule, const MachineSpeed& speed);

}  // namespace systole
