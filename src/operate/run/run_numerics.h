#pragma once
// Numerics: a name for what the bits of a run depend on besides its inputs. Equal names compute equal bits.

#include <string>

#include "execute/checkpoint/restore.h"
#include "operate/run/plan_run.h"

namespace systole {

// The instructions of our kernels and of oneDNN's, oneDNN's version; for an exact run the number of logical shards,
// otherwise the number of threads.
std::string numerics_of(const Workload& workload, const Machine& machine);

// Whether the checkpoint's run goes on, or another run begins from it.
enum class CheckpointUse { resume, new_run };
// Checks that an exact run computes as the run that saved the checkpoint. Errors: invalid, with a way to do so.
Status check_numerics(const checkpoint::Manifest& from, const Workload& workload, const std::string& numerics,
                      CheckpointUse use);

// Checks that an exact run which begins from the checkpoint computes as the run that saved it. Errors: invalid.
Status computes_alike(const checkpoint::Manifest& from, const PlannedRun& prepared);

// The instructions that the newest checkpoint of the run in `folder` was computed with. Errors: not_found, if it does
// not say or there is none.
Result<std::string> recorded_isa(const std::string& folder, const Workload& workload);

}  // namespace systole
