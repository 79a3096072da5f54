// Terms of the cloud.
#include "operate/explain/answers.h"
#include "operate/explain/topic_lists.h"

namespace systole {
namespace {

constexpr Topic kTopics[] = {
    {"ai-hypercomputer", "hypercomputer", "AI Hypercomputer", TopicGroup::term, true, false,
     "AI Hypercomputer is Google Cloud's name for its parts for AI taken together: accelerators, "
     "networks, storage, and the services that start jobs on them. It is no service of its own, "
     "and has no API of its own.",
     "gke.project gcloud.project resources.accelerators", "single-api orchestration", answers::target},
    {"accelerator", "accelerators", "Accelerator", TopicGroup::term, true, false,
     "An accelerator is a chip made for the arithmetic of machine learning: a GPU or a TPU. Its "
     "figures (peak by type, memory, bandwidth, links) are in the catalog, each with source and "
     "date.",
     "resources.accelerators resources.gpus_per_node", "gpu tpu compute", answers::accelerators},
    {"gpu", "gpus cuda", "GPU (graphics processing unit)", TopicGroup::term, true, false,
     "A GPU is an accelerator with many small cores and matrix units, and fast memory of its own. "
     "NVIDIA's are programmed by CUDA. Systole trains on a GPU through XLA: `systole run` with "
     "`--device gpu`.",
     "resources.accelerators resources.gpus_per_node slurm.gpu_type", "accelerator tpu", answers::gpus},
    {"tpu", "tpus", "TPU (tensor processing unit)", TopicGroup::term, true, false,
     "A TPU is Google's accelerator: a large systolic array for matrix products, fast memory, and "
     "links that join chips into a torus. It is rented in slices: a number of chips in a shape. "
     "Systole trains on a TPU through XLA: `systole run` with `--device tpu`.",
     "resources.accelerators resources.slices", "accelerator cloud-tpu", answers::tpus},
    {"compute-engine", "gce vm", "Compute Engine", TopicGroup::term, true, false,
     "Compute Engine is Google Cloud's service of virtual machines. `systole render` with `--on "
     "gcloud` writes the command that makes them; then they are plain machines, which ssh reaches.",
     "gcloud.create gcloud.machine gcloud.zone ssh.hosts", "simplest-start gke-or-vms", answers::prices},
    {"cloud-tpu", "tpu-vm", "Cloud TPU", TopicGroup::term, true, false,
     "Cloud TPU is Google Cloud's service that rents out TPUs: a slice of chips with the machines "
     "that host them. A TPU VM is such a machine; programs run on it, beside the chips.",
     "resources.accelerators resources.slices gcloud.create", "tpu", answers::tpus},
    {"gke", "google-kubernetes-engine kubernetes-engine", "GKE (Google Kubernetes Engine)", TopicGroup::term, true,
     false,
     "GKE is Kubernetes as Google Cloud runs it. `systole render` with `--on gke` writes the job, "
     "and the cluster with the nodes, networks and drivers that it needs.",
     "gke.project gke.cluster gke.location gke.machine gke.driver", "gke-or-vms orchestration", answers::target},
    {"vertex-ai", "vertex", "Vertex AI", TopicGroup::term, true, false,
     "Vertex AI is Google Cloud's managed platform for machine learning: training jobs, pipelines, "
     "a registry of models, endpoints. Systole does not render for it yet; `systole import` reads "
     "lines of gcloud that start its jobs.",
     "command image", "need-vertex vertex-or-own", answers::target},
    {"cloud-storage", "gcs bucket", "Cloud Storage", TopicGroup::term, true, false,
     "Cloud Storage is Google Cloud's object storage: buckets of objects that are read by range "
     "and replaced as a whole. It holds data sets, checkpoints and results. A bucket becomes a "
     "volume of a job, mounted by Cloud Storage FUSE.",
     "volumes data.train.files", "storage-for-data egress", answers::storage},
    {"spot", "preemptible spot-vm preemption", "Spot machines (preemptible)", TopicGroup::term, true, false,
     "Spot machines cost less because their cloud may take them away at any time, after a short "
     "notice. Training on them must save often and restart by itself: at the notice a run saves if "
     "there is time, and its cluster restarts it from the newest checkpoint.",
     "resources.provisioning ranks.notice ranks.preemption ranks.retries checkpoint.every",
     "checkpoint provisioning cost", answers::spot},
    {"vpc", "virtual-private-cloud", "VPC (virtual private cloud)", TopicGroup::term, true, false,
     "A VPC is a network of your own within a cloud: subnets, routes, and a firewall that says who "
     "may speak to whom. Machines in it have private addresses.",
     "gke.network gke.cluster", "private-network cloud-nat", answers::target},
    {"private-google-access", "pga", "Private Google Access", TopicGroup::term, true, false,
     "Private Google Access lets machines without a public address reach Google's services, such "
     "as storage and logging. It is switched on for a subnet. The network that Systole renders for "
     "GKE has it.",
     "gke.network gke.cluster", "private-network vpc", answers::target},
    {"cloud-nat", "nat", "Cloud NAT", TopicGroup::term, true, false,
     "Cloud NAT lets machines without a public address open connections to the internet, for "
     "example to fetch a package. Nobody can open one to them. The network that Systole renders for "
     "GKE has it.",
     "gke.network gke.cluster", "private-network vpc", answers::target},
    {"least-privilege", "privilege rbac", "Least privilege", TopicGroup::term, true, false,
     "Least privilege means that an account may do what its work needs and nothing else. Nodes of "
     "a rendered cluster have an account of their own that may write logs and metrics and read "
     "images; a job's account gets what you bind to it.",
     "kubernetes.service_account kubernetes.gcp_service_account secrets", "security secrets", answers::secrets},
    {"cmek", "encryption-key kms", "CMEK (customer-managed encryption keys)", TopicGroup::term, true, false,
     "Customer-managed encryption keys are keys of your own, in Cloud KMS, that a cloud's storage "
     "encrypts with, so that you can take them away. Systole does not render them. It encrypts "
     "checkpoints itself, with a key that you keep.",
     "checkpoint.encryption_key checkpoint.signing_key", "security", nullptr},
    {"egress", "data-transfer", "Egress", TopicGroup::term, true, false,
     "Egress is traffic that leaves a region or a cloud; it is often paid for by the byte. Keep "
     "machines, data and checkpoints in one region; copy data from elsewhere once, not in each run.",
     "gke.location gcloud.zone volumes data.folder", "cost storage-for-data", answers::egress},
};

}  // namespace

std::span<const Topic> term_topics() { return kTopics; }

}  // namespace systole
