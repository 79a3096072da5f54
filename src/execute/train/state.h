#pragma once
// The state of a job as tensors of a checkpoint, and back: one tensor per logical parameter and moment, "{layer}" in a
// name spelled out ("blocks.7.attn.q", "adamw.m/blocks.7.attn.q"), so that a checkpoint knows nothing of how a Program
// stacks.

#include <vector>

#include "execute/checkpoint/restore.h"
#include "execute/checkpoint/save.h"
#include "execute/runtime/executor.h"
#include "execute/train/host_state.h"

namespace systole {

// Parameters and state: what the "snapshot" schedule has put into staging, and where they lie what it leaves out:
// frozen parameters, and everything of a Program that has no such schedule. The spans stay valid as long as the
// executor; their bytes as long as no snapshot runs, or no step. On a mesh: what `device` owns of it, so that each
// element is saved by one rank. `copy`: where they lie on the host, for a device that keeps its memory to itself;
// REQUIRES: then it is as old as the executor.
std::vector<checkpoint::TensorPart> state_to_save(Executor& executor, std::int64_t device = 0,
                                                  HostState* copy = nullptr);

// Writes parameters and state from a checkpoint, of whatever mesh it was: what `device` of the executor's mesh holds,
// each byte read once and what is read whole verified in passing (restore_parts.h). Errors: those of restore_parts;
// then parameters and state are anything.
Status load_state(Executor& executor, const checkpoint::Checkpoint& from, std::int64_t device = 0);
// Parameters alone: for evaluation and generation, by whichever executor has parameters of these names.
Status load_parameters(Executor& executor, const checkpoint::Checkpoint& from, std::int64_t device = 0);

// Names of the tensors that a value stands for, in order of their slices.
std::vector<std::string> tensor_names(const ProgramValue& value);

}  // namespace systole
