#pragma once
// Exit codes of our processes. Clusters, agents and scripts act on them (docs/reference/exit-codes.md).

namespace systole {

constexpr int kExitDone = 0;
constexpr int kExitNo = 1;             // it ran, and the answer is no
constexpr int kExitUsage = 2;          // the command line or a document is wrong
constexpr int kExitMissing = 3;        // this machine or build lacks something
constexpr int kExitUnmet = 4;          // it ran, and a result is not as good as was required
constexpr int kExitSaved = 75;         // stopped with a state saved: run again to continue (EX_TEMPFAIL)
constexpr int kExitNotSaved = 76;      // stopped without a saved state
constexpr int kExitOverBudget = 77;    // stopped by its budget: if restarted it would stop at once
constexpr int kExitInterrupted = 130;  // 128 + SIGINT

}  // namespace systole
