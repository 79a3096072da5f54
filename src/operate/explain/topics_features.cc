// Feature groups of AI platforms, and where Systole has them.
#include "operate/explain/answers.h"
#include "operate/explain/topic_lists.h"

namespace systole {
namespace {

constexpr Topic kTopics[] = {
    {"compute", "accelerator-rich-compute", "Accelerator-rich compute", TopicGroup::feature, false, false,
     "Accelerator-rich compute means GPUs and TPUs to train and run models on. Which one it is "
     "decides speed and cost more than anything else. `systole plan` with `--on any` compares all "
     "that the catalog has, for the workload at hand: which is fastest, which is cheapest, and why "
     "the others lost. Some need a quota, some are in few zones, some need a driver or an image of "
     "their own.",
     "resources.accelerators resources.nodes resources.gpus_per_node", "accelerator gpu tpu quota",
     answers::accelerators},
    {"orchestration", "targets", "Several ways of orchestration", TopicGroup::feature, false, false,
     "Orchestration starts the ranks of a job and restarts them. One workload runs on a single "
     "machine, on machines by ssh, on Slurm, on Kubernetes and on a GKE cluster. A single machine "
     "is the fastest to set up; a cluster shares machines among many jobs and needs images, claims "
     "and a queue.",
     "slurm.partition kubernetes.kind gke.cluster ssh.hosts image", "gke-or-vms vertex-or-own", answers::target},
    {"networking", "high-performance-networking network nccl", "High-performance networking", TopicGroup::feature,
     false, false,
     "High-performance networking connects the machines of one training job. Collectives such as "
     "all-reduce wait for the slowest link, so it decides how well a job scales. The network "
     "depends on the machine family. The plan counts the bytes that each device sends; NCCL's "
     "settings come from the catalog, per family.",
     "mesh resources.accelerators kubernetes.topology", "scaling data-parallel", answers::network},
    {"storage", "data-path", "Storage and the data path", TopicGroup::feature, false, false,
     "Storage has to feed accelerators as fast as they train, or they idle. Text is tokenized once, "
     "kept in shards by content, and read ahead of the step. Object storage is cheap and needs "
     "large reads; a shared file system is faster for small files and costs more. Disks in the "
     "machine are fast and lost with it.",
     "data.train.files data.folder volumes claims folder", "storage-for-data cloud-storage", answers::storage},
    {"scheduling", "capacity capacity-planning queue", "Scheduling and capacity planning", TopicGroup::feature, false,
     false,
     "Scheduling decides which job gets which machines, and when. Idle accelerators are the largest "
     "waste, so jobs wait in a queue and begin when all of their machines are there. Systole writes "
     "no scheduler of its own: it passes queue, priority, reservation, time limit and the smallest "
     "number of nodes to Slurm and Kueue.",
     "resources.nodes resources.longest resources.provisioning resources.reservation "
     "kubernetes.queue kubernetes.priority slurm.partition slurm.qos",
     "quota spot", answers::quota},
    {"observability", "watch metrics", "Observability", TopicGroup::feature, false, false,
     "Observability means seeing what a run does and why it is slow. Each step writes an event: "
     "loss, gradient norm, and seconds by category. `systole why` sets these beside the plan. "
     "`systole run` with `--metrics` serves them to Prometheus; on Kubernetes a key asks for it.",
     "observe.every kubernetes.metrics_port", "monitoring slow", nullptr},
    {"security", "iam", "Security", TopicGroup::feature, false, false,
     "Security keeps data, models and accounts from those who should not have them. A workload "
     "contains references to secrets, never their values. Checkpoints can be encrypted and signed. "
     "Nodes of a rendered cluster have no public address, and an account of their own with few "
     "rights. Production environments accept images by digest only.",
     "secrets checkpoint.encryption_key checkpoint.signing_key checkpoint.trusted_key ranks.tls "
     "image kubernetes.gcp_service_account",
     "secrets private-network least-privilege", answers::secrets},
    {"provisioning", "terms", "Flexible provisioning", TopicGroup::feature, false, false,
     "Provisioning is the terms on which machines are rented: on demand, spot, flex-start, or from "
     "a reservation. Spot machines cost less and may be taken away at any time. They suit training "
     "that saves often, but not a service without redundancy.",
     "resources.provisioning resources.reservation ranks.notice ranks.retries checkpoint.every", "spot prices",
     answers::spot},
};

}  // namespace

std::span<const Topic> feature_topics() { return kTopics; }

}  // namespace systole
