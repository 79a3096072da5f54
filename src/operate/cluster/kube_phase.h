#pragma once
// What a cluster's objects say of a run: which phase it is in and why, when it had its machines, how it ended. Pure.

#include <optional>
#include <string>
#include <vector>

#include "ground/base/document.h"
#include "operate/cluster/cluster.h"
#include "operate/cluster/ledger.h"

namespace systole {

struct KubeSight {
  Node maker;                    // the Job, JobSet, ... (kube_objects.h)
  std::vector<Node> pods;        // of its submission
  std::optional<Node> workload;  // Kueue's, where that holds it
  std::string event;             // the newest that says why it has no pods
};
Seen seen_of(const KubeSight& sight);

// Lines of the ledger that are not in `kept` yet: a turn is a time in which one of its pods ran or more.
std::string ledger_lines(const KubeSight& sight, const Seen& seen, const std::vector<LedgerTurn>& kept);

// The exit code with which the ranks of a pod ended, once they have; of containers that ran again, the last.
std::optional<std::int64_t> exit_code_of(const Node& pod);
// Seconds of Unix time at which its last container ended; 0: none has.
std::int64_t seconds_of_end(const Node& pod);
// That of several: 75, saved, where each is 75 or 0; else the first that is neither; nothing without any.
std::optional<std::int64_t> exit_code_of(const std::vector<std::int64_t>& codes);

}  // namespace systole
