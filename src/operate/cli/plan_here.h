#pragma once
// This machine beside what is offered: what training takes on its cores, at no price.

#include <optional>
#include <string>

#include "describe/spec/workload.h"
#include "ground/base/clock.h"
#include "ground/base/result.h"
#include "ground/base/units.h"

namespace systole::cli {

struct ThisMachine {
  std::string name;             // "avx512, oneDNN 2.6.3 avx512-bf16, 2 threads"
  std::optional<Seconds> step;  // as `plan` without --on predicts it; nothing: a rate is missing
  Bytes memory, limit;          // of training, without its text; what may be used
  bool calibrated = false;      // else its speed is an estimate of machines of its kind
  bool fits() const { return memory <= limit; }
};

// On one device, whatever the workload's mesh. Nothing: its memory does not even hold the parameters. Errors: as
// make_job and open_machine.
Result<std::optional<ThisMachine>> this_machine(const Workload& workload, std::int64_t parameters, Clock& clock);

}  // namespace systole::cli
