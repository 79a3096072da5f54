#pragma once
// The state of a run from a cluster's objects: its reason, when it had its machines, how it ended. Pure.

#include <optional>
#include <string>
#include <vector>

#include "ground/base/document.h"
#include "operate/cluster/allocation_ledger.h"
#include "operate/cluster/cluster.h"

namespace systole {

struct KubeRunObjects {
  Node maker;                    // the Job, JobSet, ... (kube_objects.h)
  std::vector<Node> pods;        // of this submission
  std::optional<Node> workload;  // Kueue's Workload object, if Kueue manages it
  std::string event;             // the newest that explains missing pods
};
JobStatus status_of(const KubeRunObjects& objects);

// The exit code of a pod's ranks, once they have ended; for restarted containers, the last one.
std::optional<std::int64_t> exit_code_of(const Node& pod);
// When its last container ended, in seconds of Unix time; 0: none has.
std::int64_t seconds_of_end(const Node& pod);
// Combines several: 75 (saved) if each is 75 or 0; otherwise the first that is neither; nothing if there is none.
std::optional<std::int64_t> exit_code_of(const std::vector<std::int64_t>& codes);

}  // namespace systole
