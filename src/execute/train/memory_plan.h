#pragma once
// Every byte that a run will hold, by owner, before anything is allocated: the law fit-is-proved.

#include <string>
#include <utility>
#include <vector>

#include "execute/train/job.h"

namespace systole {

struct MemoryPlan {
  // "parameters", "state", …, "gaps" of the arena, "data queue", "dataset", "checkpoint writer", "libraries"; largest
  // first, none of 0. Sum to `total`.
  std::vector<std::pair<std::string, Bytes>> by_owner;
  Bytes arena;
  Bytes total() const;
};

// Outside the arena: rows read ahead, the tables of the dataset, the writer's buffers, code and libraries.
struct OutsideArena {
  Bytes data_queue, dataset, checkpoint_writer, libraries;
  Bytes weights;  // buffers of what reads other people's
};

// What the process holds besides: code and libraries as far as they are touched, stacks, the tokenizer, and what every
// bound kernel call takes. A rule with constants, so that it is the same in every process: docs/concepts/memory.md says
// how they were measured, and the law's test holds runs against it. `tokenizer`: what it holds; 0 for none.
Bytes planned_libraries(const Program& program, Bytes tokenizer);

MemoryPlan plan_memory(const Program& program, const OutsideArena& outside);

// On a device with memory of its own, where a compiler places what is inside a function: the Program's values as they
// are, and `temporaries`, the most that it told of a function.
MemoryPlan plan_memory(const Program& program, Bytes temporaries);

// Where a limit comes from, and who shares it.
struct MemoryBound {
  bool by_option = false;    // --memory; else resources.memory, or what there is
  std::int64_t sharers = 1;  // ranks of a node, equally: the limit is of one
};

// Refuses what does not fit: numbers, the largest owners, and edits that would make it fit (each tried by planning it).
// `rank`: whose plan it is; of a pipeline the stage is named. Errors: does_not_fit.
Status check_fit(const Workload& workload, const MemoryPlan& plan, const OutsideArena& outside, Bytes limit,
                 const Device& device, std::int64_t rank = 0, const MemoryBound& bound = {});

}  // namespace systole
