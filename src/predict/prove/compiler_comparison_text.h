#pragma once
// A workload's training step on a slice as text: the prediction, compared with what a compiler made of it.

#include <string>

#include "predict/prove/job_on_slice.h"

namespace systole::prove {

// What the Program plans and perf predicts, compared with the compiler's result. Printed after proof_text.
std::string beside_text(const JobOnSlice& job, const Proof& proof, int width);

// The prediction alone, against the nominal memory of a device.
std::string predicted_text(const JobOnSlice& job, const Slice& slice);

// Compute time only. `proof`: null: there is none. "": nothing is known.
std::string compute_text(const JobOnSlice& job, const Proof* proof);

}  // namespace systole::prove
