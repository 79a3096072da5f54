#pragma once
// job.yaml of a job of `systole batch`: its file in a ConfigMap, and a Job that computes it, Indexed if several pods do;
// with a schedule, a CronJob of such Jobs. No agent: a pod that ends too early goes on from the job's own journal.

#include "operate/targets/kubernetes/pod.h"

namespace systole {

// Unsupported features go to `wrong`. REQUIRES: k.ask.batch.
PodParts batch_parts(const KubernetesJob& k);
// In the order of creation. REQUIRES: `parts` of batch_parts.
std::vector<Node> batch_objects(const KubernetesJob& k, const PodParts& parts);
// Of the last of them, for kubectl: "job" or "cronjob".
const char* batch_kind(const KubernetesJob& k);

}  // namespace systole
