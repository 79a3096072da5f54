#pragma once
// Where a run begins that goes on from another run's checkpoint (resume.from). It is found and held against the
// workload before anything starts; the run keeps it by its absolute path and its step, so that whoever begins again
// before the run's first own checkpoint begins from the same bytes.

#include <string>
#include <vector>

#include "describe/spec/source.h"
#include "operate/cli/run_places.h"

namespace systole::cli {

struct Prepared;

struct Origin {
  CheckpointPlace place;
  std::string run;   // the folder of the run whose it is; empty: of a folder of checkpoints by itself
  std::string name;  // "/work/runs/a-1@500"
  checkpoint::Checkpoint checkpoint;
  std::vector<checkpoint::Rejected> passed_over;  // newer ones that are damaged
  std::int64_t step() const { return checkpoint.manifest().step; }
};

// What resume.from means here. Reads its manifest and looks whether its chunks are there. REQUIRES: resume.from is
// said. Errors: not_found, invalid, corrupt, io, at the key.
Result<Origin> find_origin(const Workload& workload, const WorkloadSource& source);

// That the workload has the model, data and training of the origin's run, and that something of the training is left.
// Errors: invalid, a key of the workload that differs each, as far as the run is there to tell.
Status fits_origin(const Workload& workload, const Origin& origin, const WorkloadSource& source);
// The same of what was made of the workload: the tensors, the tokens of its text, the weights in model.weights, and of
// an exact run what computes. REQUIRES: prepared.origin is there. Errors: invalid; those of reading.
Status fits_origin(Prepared& prepared, const WorkloadSource& source);

// That a run which began from `kept` (empty: from nothing) is asked for as it began; latest and blessed mean what they
// meant then. Errors: invalid.
Status keeps_origin(const Workload& asked, const std::string& kept, const std::string& run,
                    const WorkloadSource& source);

// Of the checkpoint's tensors as they lie in its files, wherever those are.
std::string hash_of(const Origin& origin);

}  // namespace systole::cli
