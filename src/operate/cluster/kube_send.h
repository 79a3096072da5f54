#pragma once
// A run's objects, given to a cluster: all of them, or none.

#include <string>

#include "operate/cluster/kube_api.h"
#include "operate/cluster/record.h"

namespace systole {

// The ConfigMap RUN-submission, which tells any machine what was submitted, and by whom.
inline constexpr const char* kSubmissionNote = "-submission";
// What it says, for a folder of runs of ours. Errors: invalid, it is none of ours.
Result<Record> record_of_note(const Node& config_map);

// Everything is held to the server's own rules first, its pods too, with as many as the quota leaves. The note of the
// submission comes first and is somebody's alone; what makes pods comes last. What went wrong half-way is taken back.
// Returns "NAME/UID", the id of what makes its pods. Errors: exists, another submission of that name goes on, or
// something that is not ours has its name; invalid, what the cluster refuses; not_found, a kind, claim or secret that
// it has not; does_not_fit, a quota; io, whether it took it is not known.
Result<std::string> send_objects(KubeApi& api, const Record& record);

}  // namespace systole
