// Questions that users of an AI platform ask.
#include "operate/explain/answers.h"
#include "operate/explain/topic_lists.h"

namespace systole {
namespace {

constexpr Topic kTopics[] = {
    {"single-api", "one-api", "Is there one API for all of it?", TopicGroup::question, false, false,
     "No: an AI platform in a cloud is many services, each with an API of its own. A workload is "
     "one document for all of them: what differs from place to place is a key of the place, and "
     "`systole render` writes the files that each takes.",
     "gke.cluster slurm.partition kubernetes.kind ssh.hosts gcloud.create", "orchestration ai-hypercomputer",
     answers::target},
    {"need-vertex", "vertex-required", "Do I have to use Vertex AI?", TopicGroup::question, false, false,
     "No. Training runs on plain machines, on Slurm, on Kubernetes and on GKE as well. Vertex AI "
     "is a managed service that runs jobs on machines of its own. Systole does not render for it "
     "yet; a line of gcloud that starts a job there is read by `systole import`.",
     "command image gke.cluster", "vertex-ai vertex-or-own", answers::target},
    {"need-tpu", "tpu-required", "Do I have to use TPUs?", TopicGroup::question, false, false,
     "No. The same workload trains on CPUs, GPUs and TPUs. `systole plan` with `--on any` compares "
     "GPUs and TPUs for it, by time and by dollars.",
     "resources.accelerators", "tpu gpu compute", answers::accelerators},
    {"simplest-start", "simple start", "What is the simplest way to start?", TopicGroup::question, false, false,
     "Begin on the machine at hand: `systole init` with a text writes a workload that trains "
     "within minutes and costs nothing. The next step is one GPU machine: `systole init --simple` "
     "names the cheapest in the catalog that comes with a GPU. A cluster comes later, with the "
     "same file.",
     "gcloud.create gcloud.machine gcloud.zone", "students compute-engine", answers::prices},
    {"gke-or-vms", "gke-vs-vms", "GKE, or machines of my own?", TopicGroup::question, false, false,
     "Plain machines are set up fastest, and everything on them is yours to choose. GKE shares "
     "machines among teams and jobs, starts lost pods again and grows with what is asked for; "
     "somebody has to run the cluster, and programs come in images.",
     "ssh.hosts gke.cluster image kubernetes.queue", "gke compute-engine", answers::target},
    {"vertex-or-own", "vertex-vs-diy", "Vertex AI, or a setup of my own?", TopicGroup::question, false, false,
     "Vertex AI runs single jobs without a cluster to look after, with its own tracking and "
     "pipelines. A setup of your own lets you choose network, image, driver and placement, and "
     "pays for machines alone. Where a job needs special networks or many tries in a row on warm "
     "machines, your own is better.",
     "gke.cluster slurm.partition ssh.hosts image", "vertex-ai gke", answers::target},
    {"slow", "why-slow slow-training", "Why is training slow?", TopicGroup::question, false, true,
     "Training is slow for five common reasons. Reading: data comes from far, unsharded or "
     "unpacked. Preprocessing: the CPU cannot keep up. Batch: it is too small to fill the "
     "accelerator. Communication: ranks wait for each other or for the network. Downloads: each run "
     "fetches models and packages again. `systole why` shows the seconds of a run by category.",
     "train.batch data.packing data.folder mesh observe.every", "mfu roofline networking", answers::slow},
    {"cost", "reduce-cost savings", "How do I reduce the cost of training?", TopicGroup::question, false, false,
     "The cost of training falls by five means. Take spot machines. Save often, so that little is "
     "lost when one goes. Give machines back when nothing runs. Keep data in the region of the "
     "machines. Let accelerators idle less. A budget stops a run that costs too much.",
     "resources.provisioning checkpoint.every objective.budget resources.longest gke.location",
     "spot budget egress slow", answers::cost},
    {"extra-fee", "pay-extra", "Do I pay extra for the platform?", TopicGroup::question, false, false,
     "No: you pay for machines, accelerators, storage, network and managed services. Rendering for "
     "GKE lists what each line costs an hour, with the date of its price. Systole costs nothing.",
     "resources.accelerators resources.provisioning resources.price", "cost prices", answers::prices},
    {"storage-for-data", "best-storage", "What is the best storage for training data?", TopicGroup::question, false,
     false,
     "Object storage in the region of the machines is the usual place: it is cheap and grows. Read "
     "it in large pieces, in shards, and keep what was read on a disk nearby. Where a program "
     "needs files and locks, a shared file system takes its place. The largest gain is often to "
     "shard and to cache.",
     "data.train.files data.folder volumes", "storage egress", answers::storage},
    {"private-network", "no-public-ip private", "Can it run without public addresses?", TopicGroup::question, false,
     false,
     "Yes. The cluster that Systole renders for GKE has private nodes: they reach Google's "
     "services by Private Google Access and the internet by Cloud NAT, and nothing reaches them "
     "from there.",
     "gke.network gke.cluster", "vpc private-google-access cloud-nat", answers::target},
    {"secrets", "secret", "How do I handle secrets?", TopicGroup::question, false, false,
     "A workload refers to a secret: an environment variable, a file, a Secret of Kubernetes, or "
     "Secret Manager. Its value is read where it is used, and is in no file, command line or log. "
     "Prefer workload identity to long-lived keys.",
     "secrets env kubernetes.service_account kubernetes.gcp_service_account", "security least-privilege",
     answers::secrets},
    {"monitoring", "first-monitoring dashboard", "What should I monitor first?", TopicGroup::question, false, false,
     "Monitor five things first: utilisation, memory, the time of a step, errors, and how long a "
     "job takes. With many machines add the throughput of storage and network. A run's events have "
     "all of these except the machine's own: `systole logs` shows them, `systole why` compares them "
     "with the plan.",
     "observe.every kubernetes.metrics_port", "observability slow", nullptr},
    {"scaling", "many-gpus scale", "What changes from one GPU to many?", TopicGroup::question, false, false,
     "From one GPU to many, four things change: the model is laid out on a mesh, the data is "
     "divided among ranks, checkpoints are written by all of them, and communication takes time. "
     "Twice the GPUs are never twice as fast. Measure the efficiency at each step.",
     "mesh train.batch train.microbatches checkpoint.every", "mesh networking fsdp", answers::scaling},
    {"inference", "serving inference-only", "Can I use it for inference only?", TopicGroup::question, false, false,
     "Yes, with the same machines and weights, of a checkpoint or of others. `systole generate` "
     "writes one text, `systole serve` answers many over HTTP, `systole batch` answers each row of "
     "a file, `systole embed` makes vectors of texts, `systole eval` measures how good a model is, "
     "and `systole plan` of a workload that serves says how many users a device carries.",
     "model.weights", "compute", nullptr},
    {"students", "student learning", "Is it suitable for students?", TopicGroup::question, false, false,
     "Yes: a small model on a text of your own trains on two cores within minutes and costs "
     "nothing. Small models and short runs teach the same ideas as large ones. Accelerators cost "
     "money by the second, so set a budget before you take one.",
     "train.steps objective.budget resources.threads", "simplest-start budget", answers::target},
};

}  // namespace

std::span<const Topic> question_topics() { return kTopics; }

}  // namespace systole
