#pragma once
// The state that a run begins with in this process, the same for all ranks: from its newest checkpoint that verifies,
// from the checkpoint of another run (resume.from), or new.

#include <cstdint>
#include <string>

#include "execute/checkpoint/group.h"
#include "execute/train/trainer.h"
#include "operate/run/checkpoint_home.h"
#include "operate/run/plan_run.h"
#include "operate/run/run_folder.h"

namespace systole {

struct RunRequest;  // train_run.h

// A rank's position among the ranks of a run.
struct RankRole {
  std::int64_t rank = 0;                 // its device in the mesh
  Communicator* communicator = nullptr;  // connects the ranks; null: there is one rank
  checkpoint::SaveGroup group;
  bool first() const { return rank == 0; }  // writes what belongs to the whole run
};

// Checks that the workload fits the run's newest checkpoint with a readable manifest. Called before anything of the run
// is written. Errors: invalid.
Status check_goes_on(const PlannedRun& prepared, const RunFolder& run);

// Checks that exact ranks compute the same bits, although they may be on machines of several kinds. Errors: invalid;
// those of the communicator.
Status numerics_of_all(const std::string& own, const RankRole& role);

// Fills the executor's parameters and state. A run that goes on keeps its workload.yaml until the checkpoint is known
// to fit the new one; then rank 0 writes the new one, if the request has documents. `home`: of the run.
// REQUIRES: the executor is started. Errors: invalid: the checkpoint has other numbers, or was computed otherwise;
// corrupt, io: there are checkpoints, but none can be read.
Result<TrainState> begin_state(PlannedRun& prepared, RunFolder& folder, const CheckpointHome& home,
                               const std::string& numerics, const RunRequest& request);

}  // namespace systole
