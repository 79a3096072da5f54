#pragma once
// A checkpoint as parameters to export.

#include "execute/checkpoint/restore.h"
#include "execute/weights/export.h"

namespace systole {

// Parameters of a checkpoint, which is borrowed.
// Errors of reading: not_found, if the checkpoint lacks a tensor; those of Checkpoint::read.
ParameterSource source_of(const checkpoint::Checkpoint& from);

// Merges LoRA adapters: W + scale A B in place of W [in, out], where the checkpoint, which is borrowed, has A [in,
// rank] and B [rank, out]. Errors also: corrupt, if their sizes do not match.
ParameterSource with_adapters(ParameterSource source, const checkpoint::Checkpoint& from, double scale);

}  // namespace systole
