#include "describe/spec/job_target_table.h"

#include <algorithm>

namespace systole {
namespace {

constexpr JobTargetAbility kYes{true, ""};
constexpr JobTargetAbility yes(const char* how) { return {true, how}; }
constexpr JobTargetAbility no(const char* why) { return {false, why}; }

// Shared by all targets that run pods.
constexpr JobTargetAbility kPodGang = yes("with `kubernetes.queue`: Kueue lets all pods in, or none");
constexpr JobTargetAbility kPodRestarts = yes("`ranks.retries` times, by its Job, JobSet or operator");
constexpr JobTargetAbility kPodBatches = yes("a Job, of several pods with `shards`; a CronJob with a schedule");
constexpr JobTargetAbility kPodServes = yes("a Deployment behind a Service, autoscaled by its waiting requests");
constexpr JobTargetAbility kPodBudget = yes("Job and JobSet, with `folder` in a claim or volume");

// The examples of the reference pages; a test renders each.
constexpr const char* kSlurmExample = R"(systole: 1
name: train
command: [python3, train.py]
resources: { nodes: 2, gpus_per_node: 8, longest: 1d }
slurm: { partition: gpu }
)";
constexpr const char* kKubernetesExample = R"(systole: 1
name: train
command: [python3, train.py]
image: registry.example/train:1.0
claims: { /runs: runs }
folder: /runs
resources: { accelerators: 'a2-highgpu-8g:2' }
kubernetes: { namespace: research }
)";
constexpr const char* kGkeExample = R"(systole: 1
name: train
command: [python3, train.py]
image: registry.example/train:1.0
claims: { /runs: runs }
folder: /runs
resources: { accelerators: 'a3-highgpu-8g:2', longest: 2d }
gke: { project: my-lab-7, cluster: train, location: us-central1-a }
)";
constexpr const char* kGcloudExample = R"(systole: 1
name: vm
workload: machines
resources: { accelerators: 'a2-highgpu-4g:1' }
gcloud: { create: instances, name: vm, zone: us-central1-a, machine: a2-highgpu-4g }
)";
constexpr const char* kSshExample = R"(systole: 1
name: train
command: [python3, train.py]
resources: { gpus_per_node: 8 }
ssh: { hosts: [alice@node1, alice@node2] }
folder: /shared/runs
)";
constexpr const char* kDockerExample = R"(systole: 1
name: train
image: europe-west4-docker.pkg.dev/lab/ml/train:1.0
model: { family: mlp, inputs: 784, hidden: [], outputs: 10, loss: squared_error }
data: { kind: linear, rows: 60000, held_out_rows: 1000, noise: 0.1 }
train: { batch: 32, steps: 1000, optimizer: { kind: sgd, rate: 0.01 } }
)";

constexpr JobTargetRow kTargets[] = {
    {.name = "slurm",
     .title = "Slurm",
     .about = "A batch script for sbatch, with the files that it starts from.",
     .example = kSlurmExample,
     .keys = {"slurm."},
     .includes = nullptr,
     .jobs = kYes,
     .serves = yes("a job of one machine, begun again when its time is up"),
     .batches = yes("a task on each node, with `shards` several; an entry of scrontab with a schedule"),
     .machines = no("Slurm starts jobs, and makes no machines"),
     .tpus = no("Slurm has no TPUs here"),
     .spot = no("the machines of a Slurm cluster are there already"),
     .arrays = yes("`slurm.array`"),
     .provisions = no("a cluster of Slurm has its machines already"),
     .submits = yes("by sbatch, squeue, scancel and srun"),
     .gang = kYes,
     .restarts = yes("`ranks.retries` times, by requeue"),
     .budget = yes("not of an array"),
     .chains = yes("by a dependency of its job"),
     .exec = yes("by srun"),
     .contexts = no("Slurm's programs speak to one cluster"),
     .adopts = no("Slurm keeps no record of where a run was submitted")},
    {.name = "kubernetes",
     .title = "Kubernetes",
     .about =
         "Objects for kubectl or the API server of a cluster: a job or the servers of a model, and all that it needs.",
     .example = kKubernetesExample,
     .keys = {"kubernetes.", "claims", "volumes"},
     .includes = nullptr,
     .jobs = kYes,
     .serves = kPodServes,
     .batches = kPodBatches,
     .machines = no("Kubernetes starts jobs, and makes no machines"),
     .tpus = kYes,
     .spot = yes("its pods select nodes of these terms"),
     .arrays = no("a Job here is one run"),
     .provisions = no("a cluster has its nodes already, or its autoscaler makes them"),
     .submits = yes("by the API server"),
     .gang = kPodGang,
     .restarts = kPodRestarts,
     .budget = kPodBudget,
     .chains = no("nothing on Kubernetes waits for another job"),
     .exec = yes("by kubectl"),
     .contexts = yes("those of the kubeconfig"),
     .adopts = yes("by what the cluster keeps of each run")},
    {.name = "gke",
     .title = "Google Kubernetes Engine",
     .about = "As for Kubernetes, with what makes the cluster and its node pools, by gcloud or Terraform.",
     .example = kGkeExample,
     .keys = {"gke."},
     .includes = "kubernetes",
     .jobs = kYes,
     .serves = kPodServes,
     .batches = kPodBatches,
     .machines = no("its node pools are made for a job"),
     .tpus = kYes,
     .spot = yes("its node pools have these terms"),
     .arrays = no("a Job here is one run"),
     .provisions = yes("a cluster with node pools, by gcloud or Terraform"),
     .submits = no("once the cluster is made: `--on kubernetes --context`"),
     .gang = kPodGang,
     .restarts = kPodRestarts,
     .budget = kPodBudget,
     .chains = no("as `submit`"),
     .exec = no("as `submit`"),
     .contexts = no("as `submit`"),
     .adopts = no("as `submit`")},
    {.name = "gcloud",
     .title = "machines by gcloud",
     .about = "The command of gcloud's that makes the machines, and the line that deletes them.",
     .example = kGcloudExample,
     .keys = {"gcloud.create"},
     .includes = nullptr,
     .jobs = no("it makes their machines, and starts nothing"),
     .serves = no("it makes their machines, and starts nothing"),
     .batches = no("it makes their machines, and starts nothing"),
     .machines = kYes,
     .tpus = kYes,
     .spot = yes("its machines have these terms"),
     .provisions = yes("by one command of gcloud's")},
    {.name = "ssh",
     .title = "plain machines",
     .about = "Scripts that bring the files to each machine and start its agent, by OpenSSH.",
     .example = kSshExample,
     .keys = {"ssh."},
     .includes = nullptr,
     .jobs = kYes,
     .serves = yes("a server on each machine, and no address in front of them"),
     .batches = yes("a service of systemd on each machine, with `shards` several; a timer with a schedule"),
     .machines = no("its machines are there already"),
     .tpus = kYes,
     .spot = no("its machines are there already"),
     .arrays = no("plain machines have none"),
     .provisions = no("its machines are there already"),
     .submits = yes("by OpenSSH"),
     .gang = kYes,
     .restarts = yes("`ranks.retries` times, by a script on each machine"),
     .budget = kYes,
     .chains = no("nothing on plain machines waits for another job"),
     .exec = yes("by ssh"),
     .contexts = no("plain machines are named by `ssh.hosts`"),
     .adopts = no("plain machines keep no record of where a run was submitted")},
    {.name = "docker",
     .title = "an image",
     .about = "A Dockerfile and the files that it copies, for docker or Cloud Build.",
     .example = kDockerExample,
     .keys = {},
     .includes = nullptr,
     .jobs = no("it builds what starts one"),
     .serves = yes("an image that tells its health, and a compose file that starts it"),
     .batches = no("an image has no times"),
     .machines = no("an image makes none"),
     .images = kYes,
     .tpus = kYes}};

constexpr JobTargetColumn kColumns[] = {
    {"jobs", &JobTargetRow::jobs, "starts a workload that trains, or a program of your own"},
    {"serves", &JobTargetRow::serves, "takes `workload: serve`: starts servers of a model"},
    {"batches", &JobTargetRow::batches, "runs a job of `systole batch`, at the times of its schedule"},
    {"machines", &JobTargetRow::machines, "takes `workload: machines`, on which nothing runs"},
    {"images", &JobTargetRow::images, "takes `--base` and `--accelerator` of an image to build"},
    {"tpus", &JobTargetRow::tpus, "takes TPUs as `resources.accelerators`"},
    {"spot", &JobTargetRow::spot, "takes `resources.provisioning`: spot, reserved, flex-start, on demand"},
    {"arrays", &JobTargetRow::arrays, "starts several runs of one workload at once, each with a seed of its own"},
    {"provisions", &JobTargetRow::provisions, "makes the machines that the workload runs on"},
    {"submits", &JobTargetRow::submits,
     "`submit` starts a run; `runs`, `logs`, `stop`, `resume` and `results` follow it"},
    {"gang", &JobTargetRow::gang, "starts all nodes of a run together, or none"},
    {"restarts", &JobTargetRow::restarts, "begins a run again that was preempted or lost a node"},
    {"budget", &JobTargetRow::budget, "saves and ends a run that has cost `objective.budget`"},
    {"chains", &JobTargetRow::chains, "`submit --after RUN` begins a run when another is done"},
    {"exec", &JobTargetRow::exec, "`exec` and `ssh` reach the machines of a run"},
    {"contexts", &JobTargetRow::contexts, "`submit --context NAME` chooses one of several clusters"},
    {"adopts", &JobTargetRow::adopts, "`runs --on` finds runs that were submitted from elsewhere"}};

}  // namespace

std::span<const JobTargetRow> job_target_table() { return kTargets; }

const JobTargetRow* find_job_target_row(std::string_view name) {
  const auto* row = std::ranges::find_if(kTargets, [&](const JobTargetRow& each) { return name == each.name; });
  return row == std::end(kTargets) ? nullptr : row;
}

std::span<const JobTargetColumn> job_target_columns() { return kColumns; }

std::vector<std::string> job_target_names() {
  std::vector<std::string> names;
  for (const JobTargetRow& row : kTargets) names.emplace_back(row.name);
  return names;
}

std::vector<std::string> job_targets_that(JobTargetAbility JobTargetRow::*ability) {
  std::vector<std::string> names;
  for (const JobTargetRow& row : kTargets)
    if (row.*ability) names.emplace_back(row.name);
  return names;
}

std::vector<std::string> job_starters_that(JobTargetAbility JobTargetRow::*ability) {
  std::vector<std::string> names;
  for (const JobTargetRow& row : kTargets)
    if (row.jobs && row.*ability) names.emplace_back(row.name);
  return names;
}

}  // namespace systole
