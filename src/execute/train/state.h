#pragma once
// Converts a job's state to tensors of a checkpoint and back: one tensor per logical parameter and moment, with
// "{layer}" in a name expanded ("blocks.7.attn.q", "adamw.m/blocks.7.attn.q"). So a checkpoint does not depend on how a
// Program stacks layers.

#include <vector>

#include "execute/checkpoint/restore.h"
#include "execute/checkpoint/save.h"
#include "execute/runtime/executor.h"
#include "execute/train/host_state.h"

namespace systole {

// Parameters and state to save: from staging where the "snapshot" schedule copied them, else in place (frozen
// parameters, and everything of a Program without that schedule). The spans are valid as long as the executor; their
// bytes until the next snapshot, or the next step. On a mesh: what `device` owns, so each element is saved by one rank.
// `copy`: host copies, for a device whose memory the host cannot access. REQUIRES: it lives as long as the executor.
std::vector<checkpoint::TensorPart> state_to_save(Executor& executor, std::int64_t device = 0,
                                                  HostState* copy = nullptr);

// Loads parameters and state from a checkpoint of any mesh: what `device` of the executor's mesh holds. Each byte is
// read once, and parts that are read whole are verified (restore_parts.h).
// Errors: those of restore_parts; then parameters and state are undefined.
Status load_state(Executor& executor, const checkpoint::Checkpoint& from, std::int64_t device = 0);
// Loads parameters only, for evaluation and generation, into any executor that has parameters of these names.
Status load_parameters(Executor& executor, const checkpoint::Checkpoint& from, std::int64_t device = 0);

// Names of the tensors that a value holds, in slice order.
std::vector<std::string> tensor_names(const ProgramValue& value);

}  // namespace systole
