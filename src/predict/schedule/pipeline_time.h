#pragma once
// The time of a pipeline, from the times of its chunks for one microbatch, without Programs. For the plan search, which
// compares many pipelines and many stacks of layers.

#include <vector>

#include "describe/partition/pipeline.h"
#include "predict/schedule/player.h"

namespace systole {

struct PipelineCosts {
  std::vector<Seconds> forward, backward;  // per chunk, for one microbatch
};

// The steps of all stages. A step begins when its stage is free and its predecessor has ended: the same microbatch on
// the chunk before (backward: the chunk after, and the chunk's own forward). A step's duration includes its transfer.
// Duration c is chunk c's forward, num_chunks + c its backward. Errors: as pipeline_steps.
ActionGraph actions_of(const PipelineStrategy& pipeline, int microbatches);

// From the first forward to the last backward. REQUIRES: costs of all chunks. Errors: as pipeline_steps. Thread-safe.
Seconds pipeline_time(const PipelineStrategy& pipeline, int microbatches, const PipelineCosts& costs);

}  // namespace systole
