#pragma once
// One line per target: its class, in the target.cc of its folder. job_targets.cc orders them.

#include "operate/targets/job_target.h"

namespace systole {

const JobTarget& slurm_target();
const JobTarget& kubernetes_target();
const JobTarget& gke_target();
const JobTarget& gcloud_target();
const JobTarget& ssh_target();
const JobTarget& docker_target();

}  // namespace systole
