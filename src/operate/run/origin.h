#pragma once
// The origin of a run: the checkpoint of another run that it begins from (resume.from). It is found and compared with
// the workload before anything starts. The run records it by absolute path and step, so a restart before the run's
// first own checkpoint begins from the same bytes.

#include <string>
#include <vector>

#include "describe/spec/source.h"
#include "operate/run/run_places.h"

namespace systole {

struct PlannedRun;

struct Origin {
  CheckpointPlace place;
  std::string run;   // the run's folder; empty: a bare checkpoint folder
  std::string name;  // "/work/runs/a-1@500"
  checkpoint::Checkpoint checkpoint;
  std::vector<checkpoint::Rejected> passed_over;  // newer ones that are damaged
  std::int64_t step() const { return checkpoint.manifest().step; }
};

// Resolves resume.from. Reads the checkpoint's manifest and checks that its chunks exist. REQUIRES: resume.from is set.
// Errors: not_found, invalid, corrupt, io, at the key.
Result<Origin> find_origin(const Workload& workload, const WorkloadSource& source);

// Checks that the workload has the model, data and training of the origin's run, and that training steps are left.
// Errors: invalid, one for each key that differs, as far as the origin's run is available.
Status fits_origin(const Workload& workload, const Origin& origin, const WorkloadSource& source);
// The same for the prepared run: the tensors, the tokens of its text, the weights in model.weights, and for exact
// training the numerics. REQUIRES: prepared.origin is set. Errors: invalid; those of reading.
Status fits_origin(PlannedRun& prepared, const WorkloadSource& source);

// Checks that resume.from still means `kept`, the origin that the run began from (empty: none); `latest` and `blessed`
// mean what they meant then. Errors: invalid.
Status keeps_origin(const Workload& asked, const std::string& kept, const std::string& run,
                    const WorkloadSource& source);

// Hash of the checkpoint's tensors as stored, independent of their location.
std::string hash_of(const Origin& origin);

}  // namespace systole
