#pragma once
// The memory of a run by owner, before anything is allocated: the law fit-is-proved.

#include <string>
#include <utility>
#include <vector>

#include "execute/train/training_job.h"

namespace systole {

struct MemoryPlan {
  // "parameters", "state", …, "gaps" of the arena, "data queue", "dataset", "checkpoint writer", "libraries"; largest
  // first, without zeros. They sum to `total`.
  std::vector<std::pair<std::string, Bytes>> by_owner;
  Bytes arena;
  Bytes total() const;
};

// Memory outside the arena: prefetched rows, tables of the dataset, buffers of the checkpoint writer, code and
// libraries.
struct OutsideArena {
  Bytes data_queue, dataset, checkpoint_writer, libraries;
  Bytes weights;  // buffers for reading weights of other formats
};

// Other memory of the process: the touched pages of code and libraries, stacks, the tokenizer, and every bound kernel
// call. A formula with constants, so it is the same in every process. docs/concepts/memory.md says how they were
// measured; the law's test checks runs against it. `tokenizer`: its size; 0: none.
Bytes planned_libraries(const Program& program, Bytes tokenizer);

MemoryPlan plan_memory(const Program& program, const OutsideArena& outside);

// For a device with its own memory, whose compiler places the temporaries of a function: the Program's values, and
// `temporaries`, the largest size that the compiler reported for a function.
MemoryPlan plan_memory(const Program& program, Bytes temporaries);

// The source of a memory limit, and who shares it.
struct MemoryBound {
  bool by_option = false;    // --memory; else resources.memory or the machine's memory
  std::int64_t sharers = 1;  // ranks of a node that share equally; the limit is that of one rank
};

// Refuses a plan that does not fit. The error has the numbers, the largest owners, and edits that would make it fit
// (each tried by planning it). `rank`: the rank of the plan; in a pipeline the stage is named.
// Errors: does_not_fit.
Status check_fit(const Workload& workload, const MemoryPlan& plan, const OutsideArena& outside, Bytes limit,
                 const Device& device, std::int64_t rank = 0, const MemoryBound& bound = {});

}  // namespace systole
