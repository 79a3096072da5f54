#pragma once
// Creates a run's objects on a cluster: all of them, or none.

#include <string>

#include "operate/cluster/record.h"
#include "operate/targets/kubernetes/kube_api.h"

namespace systole {

// The ConfigMap RUN-submission, which records on the cluster what was submitted, and by whom.
inline constexpr const char* kSubmissionNote = "-submission";
// Its record, for a local folder of runs. Errors: invalid, it is not ours.
Result<Record> record_of_note(const Node& config_map);

// First dry-runs all objects against the server's rules, their pods too, and compares the pods with the quota left. The
// ConfigMap of the submission is created first and gives exclusive ownership; objects that create pods come last. After
// a failure everything is undone. Returns "NAME/UID", the id of the object that creates its pods. Errors: exists,
// another submission of that name is active, or an object that is not ours has its name; invalid, refused by the
// cluster; not_found, a kind, claim or secret is missing; does_not_fit, a quota; io, unknown whether it was accepted.
Result<std::string> send_objects(KubeApi& api, const Record& record);

}  // namespace systole
