#pragma once
// What a process of ours ends with, which whoever starts it goes by: a cluster, an agent, a script
// (docs/reference/exit-codes.md).

namespace systole {

constexpr int kExitDone = 0;
constexpr int kExitNo = 1;             // it ran, and the answer is no
constexpr int kExitUsage = 2;          // the command line or a document is wrong
constexpr int kExitMissing = 3;        // this machine or build lacks something
constexpr int kExitSaved = 75;         // stopped with a state saved: run again to go on (EX_TEMPFAIL)
constexpr int kExitNotSaved = 76;      // stopped without one
constexpr int kExitOverBudget = 77;    // stopped by its budget: begun again it would stop at once
constexpr int kExitInterrupted = 130;  // 128 + SIGINT

}  // namespace systole
