#pragma once
// The training steps of rows of several lengths (data.buckets) on a slice, a line each: the memory and the FLOPs that
// are planned, compared with what a compiler made of each.

#include <span>
#include <string>

#include "predict/prove/job_on_slice.h"
#include "predict/prove/prove.h"

namespace systole::prove {

// A table; below it, why steps do not fit, in the compiler's words, and how many fit. `proofs`: of each of `steps`.
std::string lengths_text(std::span<const JobOnSlice> steps, std::span<const Proved> proofs, int width);
// Without a compiler, against the nominal memory of a device.
std::string predicted_lengths_text(std::span<const JobOnSlice> steps, const Slice& slice, int width);

// A list: of each step its length and rows, and its document, as beside_node or predicted_node have it.
Node lengths_node(std::span<const JobOnSlice> steps, std::span<const Proved> proofs);
Node predicted_lengths_node(std::span<const JobOnSlice> steps, const Slice& slice);

}  // namespace systole::prove
