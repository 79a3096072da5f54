#pragma once
// The time that the cores compute in one run, by class of op: perf's beside the compiler's schedule.

#include <string>

#include "ground/base/document.h"
#include "operate/cli/prove_job.h"
#include "predict/prove/proof.h"

namespace systole::cli {

// "": perf has no rates of the chip, and the compiler told no cycles. Without a proof, or of one that is not whole, the
// prediction alone.
std::string compute_text(const JobOnSlice& job, const prove::Proof* proof);
// {"all": {"predicted_s": …, "scheduled_s": …, "ratio": …}, "contraction": …, "unnamed": {"scheduled_s": …}}; an empty
// map as above.
Node compute_node(const JobOnSlice& job, const prove::Proof* proof);

}  // namespace systole::cli
