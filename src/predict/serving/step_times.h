#pragma once
// The time of each function of the serving Program (describe/job/engine_program.h) and the memory that it needs, from
// the same Program that `systole serve` runs. A piece of a prompt computes its whole bucket, and a decode its bucket of
// sequences; on chips over the whole length of their tables, whatever is in them, so each has one time.

#include <optional>
#include <string>

#include "describe/job/engine_program.h"
#include "predict/perf/estimate.h"
#include "predict/perf/step_parts.h"
#include "predict/perf/step_time.h"
#include "predict/serving/simulate.h"

namespace systole {

struct ServedTimes {
  ServingTimes times;
  std::optional<std::string> unknown;  // why there are none: a rate that the machine lacks
};

// On a machine whose ops have measured rates (predict/perf/estimate.h). REQUIRES: completed options of the Program.
ServedTimes times_on_machine(const Program& program, const EngineOptions& options, const MachineSpeed& speed);

// On a chip of the catalog, as `systole plan --on` prices training (predict/perf/step_time.h): its products and memory
// at the fractions that the stack reaches. XLA compiles each function whole, so that the host launches it
// once. REQUIRES: completed options of the Program, which is of one device.
ServedTimes times_on_chip(const Program& program, const EngineOptions& options, const Accelerator& chip,
                          const KernelChoice& kernels, const StackProfile& stack);

struct ServingMemory {
  Bytes parameters, cache;  // cache: keys and values of all slots
  Bytes rest;               // of the arena: activations, workspace, inputs and outputs
  Bytes outside;            // of the arena: libraries, contexts
  Bytes limit;              // of the device, or of the process; 0: none
  Bytes total() const { return parameters + cache + rest + outside; }
  bool fits() const { return limit == Bytes() || total() <= limit; }
};
ServingMemory serving_memory(const Program& program, Bytes outside, Bytes limit);

}  // namespace systole
