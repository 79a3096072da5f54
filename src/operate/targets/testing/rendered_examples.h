#pragma once
// The contents of examples/rendered: for each, its workload and target. For tests.

#include <optional>
#include <string>
#include <vector>

#include "ground/base/testing/places.h"
#include "ground/base/text_file.h"
#include "operate/render/testing/builtin_facts.h"
#include "operate/targets/job_targets.h"

namespace systole {

inline const std::string kSource = SYSTOLE_SOURCE_DIR;

inline constexpr const char* kImage =
    "image=registry.example/train@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

struct Example {
  const char* folder;
  const char* target;
  const char* workload;
  std::vector<std::string> sets;
  const char* base = "";
  std::optional<ImageAccelerator> accelerator = {};
};

// A user's program on catalog accelerators, as pods.
inline std::vector<std::string> pods_on(const std::string& accelerators, std::vector<std::string> more = {}) {
  more.insert(more.begin(), {"image=registry.example/ddp@sha256:" + std::string(64, 'a'), "claims={/runs: runs}",
                             "folder=/runs", "resources.accelerators=" + accelerators});
  return more;
}

inline const std::vector<Example>& examples() {
  static const std::vector<Example> all = {
      {"slurm-model",
       "slurm",
       "linear.yaml",
       {"mesh={data: 4}", "resources.nodes=4", "resources.threads=2", "resources.longest=30min"}},
      {"slurm-seeds",
       "slurm",
       "linear.yaml",
       {"slurm.array=0:9", "slurm.at_once=2", "resources.threads=2", "resources.memory=2GiB",
        "resources.longest=10min"}},
      {"slurm-program",
       "slurm",
       "ddp.yaml",
       {"resources.nodes=2", "resources.gpus_per_node=8", "resources.longest=2d", "ranks.notice=2min",
        "slurm.partition=gpu", "slurm.account=lab", "slurm.qos=high", "slurm.gpu_type=h100", "slurm.constraint=ib&h100",
        "env={NCCL_DEBUG: WARN}", "folder=/shared/runs"}},
      {"slurm-budget",
       "slurm",
       "linear.yaml",
       {"mesh={data: 4}", "resources.nodes=4", "resources.threads=2", "resources.longest=30min", "resources.price=2.50",
        "objective.budget=100"}},
      {"kubernetes-model",
       "kubernetes",
       "linear.yaml",
       {"mesh={data: 4}", "resources={nodes: 4, threads: 2, memory: 4GiB}", "image=registry.example/systole:0.1",
        "claims={/runs: runs}", "folder=/runs", "kubernetes.selector={disk: fast}"}},
      {"kubernetes-program",
       "kubernetes",
       "ddp.yaml",
       {"resources={nodes: 2, gpus_per_node: 8, threads: 4, memory: 512GiB}", "claims={/runs: runs, /data: corpus}",
        "image=registry.example/ddp@sha256:" + std::string(64, 'a'), "folder=/runs", "kubernetes.namespace=research",
        "labels={team: vision}"}},
      {"ssh-model",
       "ssh",
       "linear.yaml",
       {"mesh={data: 2}", "ssh.hosts=[alice@node1, 'alice@node2:2222']", "folder=/shared/runs"}},
      {"ssh-program", "ssh", "ddp.yaml", {"ssh.hosts=[node1]", "resources.gpus_per_node=4"}},
      {"docker-cpu",
       "docker",
       "linear.yaml",
       {"image=europe-west4-docker.pkg.dev/lab/ml/linear:0.1", "labels={team: vision}"}},
      {"docker-cuda", "docker", "linear.yaml", {"image=registry.example/linear:0.1", "resources.gpus_per_node=8"}},
      {"docker-tpu",
       "docker",
       "linear.yaml",
       {"image=europe-west4-docker.pkg.dev/lab/ml/linear-tpu:0.1"},
       "",
       ImageAccelerator::tpu},
      {"docker-program",
       "docker",
       "ddp.yaml",
       {"image=europe-west4-docker.pkg.dev/lab/ml/ddp:0.1"},
       "pytorch/pytorch:2.13.0-cuda13.0-cudnn9-runtime"},
      {"kubernetes-h100",
       "kubernetes",
       "ddp.yaml",
       {"name=h100", "resources={accelerators: 'h100:16', provisioning: spot}", "ranks.notice=10s", kImage,
        "claims={/runs: runs, /data: corpus}", "folder=/runs"}},
      {"kubernetes-torchrun",
       "kubernetes",
       "ddp.yaml",
       {"resources={accelerators: 'a2-highgpu-8g:2', threads: 8, memory: 512GiB}", kImage,
        "kubernetes.launcher=torchrun", "env={OMP_NUM_THREADS: '8'}"}},
      {"kubernetes-jobset-v5e",
       "kubernetes",
       "ddp.yaml",
       {"name=v5e", "command=[python3, train.py]", "resources={accelerators: 'v5e:4x4'}", kImage,
        "claims={/runs: runs}", "folder=/runs"}},
      {"kubernetes-multislice-v5p",
       "kubernetes",
       "ddp.yaml",
       {"name=v5p", "command=[python3, train.py]",
        "resources={accelerators: v5p-32, slices: 4, provisioning: reserved, reservation: big-one}", kImage,
        "kubernetes.launcher=program"}},
      {"kubernetes-pytorchjob",
       "kubernetes",
       "ddp.yaml",
       {"resources={accelerators: 'a2-highgpu-8g:2'}", kImage, "kubernetes.kind=pytorchjob"}},
      {"kubernetes-pytorchjob-elastic",
       "kubernetes",
       "ddp.yaml",
       {"resources={accelerators: 'a2-highgpu-8g:4', nodes: '1:4'}", kImage, "kubernetes.kind=pytorchjob"}},
      {"kubernetes-jaxjob",
       "kubernetes",
       "ddp.yaml",
       {"command=[python3, train.py]", "resources={accelerators: 'h200:16', provisioning: flex-start}", kImage,
        "kubernetes.kind=jaxjob"}},
      {"kubernetes-trainjob",
       "kubernetes",
       "ddp.yaml",
       {"resources={accelerators: 'h100:16'}", kImage, "kubernetes.kind=trainjob"}},
      {"slurm-elastic", "slurm", "ddp.yaml", {"resources.nodes=2:8", "resources.longest=1d"}},
      // Networks of each machine family.
      {"kubernetes-t4", "kubernetes", "ddp.yaml", pods_on("t4:8@n1-*+4xt4", {"resources={threads: 4, memory: 64GiB}"})},
      {"kubernetes-l4", "kubernetes", "ddp.yaml", pods_on("g2-standard-96:2")},
      {"kubernetes-a2", "kubernetes", "ddp.yaml", pods_on("a2-highgpu-8g:2")},
      {"kubernetes-a3-mega", "kubernetes", "ddp.yaml", pods_on("a3-megagpu-8g:2")},
      {"kubernetes-a3-ultra", "kubernetes", "ddp.yaml", pods_on("a3-ultragpu-8g:2")},
      {"kubernetes-a4", "kubernetes", "ddp.yaml", pods_on("a4-highgpu-8g:2")},
      {"kubernetes-a4x", "kubernetes", "ddp.yaml", pods_on("a4x-highgpu-4g:2")},
      {"kubernetes-v6e", "kubernetes", "ddp.yaml", pods_on("v6e:4x4")},
      {"slurm-a3-mega", "slurm", "ddp.yaml", {"resources.accelerators=a3-megagpu-8g:2"}},
      // Objects around a job.
      {"kubernetes-queue", "kubernetes", "ddp.yaml",
       pods_on("a3-megagpu-8g:2",
               {"kubernetes={queue: research, priority: high, priority_value: 1000, topology: preferred:block, "
                "queue_nodes: 8, cohort: labs, queued: true}",
                "resources.longest=2d"})},
      {"kubernetes-queued", "kubernetes", "ddp.yaml",
       pods_on("a3-highgpu-8g:2", {"kubernetes.queued=true", "resources={longest: 1d, provisioning: flex-start}"})},
      {"kubernetes-volumes",
       "kubernetes",
       "ddp.yaml",
       {"image=registry.example/ddp@sha256:" + std::string(64, 'a'), "folder=/runs",
        "resources={threads: 4, memory: 64GiB, gpus_per_node: 1}",
        "volumes={/runs: {filestore: zonal, size: 10TiB}, /data: {bucket: my-corpus, read_only: true}, /fast: {lustre: "
        "my-project/us-central1-a/fast, size: 9000GiB, address: 10.0.0.3/lfs}, /scratch: {local_ssd: true, size: "
        "300GiB}}",
        "secrets={HF_TOKEN: 'kubernetes:hub/token', WANDB_API_KEY: 'secret-manager:my-project/wandb'}",
        "kubernetes={gcp_service_account: trainer@my-project.iam.gserviceaccount.com, metrics_port: 9090}"}},
      {"gke-model",
       "gke",
       "linear.yaml",
       {"mesh={data: 4}", "resources={nodes: 4, threads: 4, memory: 12GiB, longest: 2h}", kImage,
        "claims={/runs: runs}", "folder=/runs", "gke={project: my-lab-7, cluster: train, location: us-central1-a}"}},
      {"gke-h100",
       "gke",
       "ddp.yaml",
       {"name=h100", "resources={accelerators: 'a3-highgpu-8g:2', longest: 2d}", kImage,
        "claims={/runs: runs, /data: corpus}", "folder=/runs", "labels={team: vision}",
        "gke={project: my-lab-7, cluster: train, location: us-central1, zone: us-central1-a}"}},
      {"gke-v5e-spot",
       "gke",
       "ddp.yaml",
       {"name=v5e", "command=[python3, train.py]", "resources={accelerators: 'v5e:4x4', provisioning: spot}",
        "ranks.notice=10s", kImage, "claims={/runs: runs}", "folder=/runs",
        "gke={project: my-lab-7, cluster: train, location: us-west4-a}"}},
      // Servers.
      {"kubernetes-serve",
       "kubernetes",
       "serve-small.yaml",
       {"serve.from=/runs/gpt2", "serve.replicas=2", "resources={threads: 4, memory: 4GiB}",
        "image=registry.example/systole:0.1", "claims={/runs: runs}", "kubernetes.selector={disk: fast}"}},
      {"gke-serve",
       "gke",
       "serve-8b.yaml",
       {"serve.from=/models/llama3.1-8b", "serve.replicas=3:6", "serve.parameter=i8", "serve.cold_start=4min",
        "resources.accelerators=g2-standard-12:1", kImage, "volumes={/models: {bucket: my-models, read_only: true}}",
        "kubernetes={namespace: serving, gcp_service_account: server@my-lab-7.iam.gserviceaccount.com}",
        "gke={project: my-lab-7, cluster: serve, location: us-central1-a}"}},
      {"slurm-serve",
       "slurm",
       "serve-small.yaml",
       {"serve.from=runs/gpt2", "serve.replicas=2", "resources={threads: 4, memory: 4GiB, longest: 7d}",
        "slurm.partition=cpu"}},
      {"ssh-serve",
       "ssh",
       "serve-8b.yaml",
       {"serve.from=/models/llama3.1-8b", "resources.gpus_per_node=1", "ssh.hosts=[alice@node1, 'alice@node2:2222']"}},
      {"docker-serve-cpu",
       "docker",
       "serve-small.yaml",
       {"serve.from=/models/gpt2", "resources={threads: 4, memory: 4GiB}",
        "image=europe-west4-docker.pkg.dev/lab/ml/server:0.1"}},
      {"docker-serve-cuda",
       "docker",
       "serve-8b.yaml",
       {"serve.from=/models/llama3.1-8b", "serve.parameter=i8", "resources.gpus_per_node=1",
        "image=registry.example/server:0.1"}},
      {"gke-dlrm",
       "gke",
       "ddp.yaml",
       {"name=dlrm", "command=[python3, train_dlrm.py, --data, /data/criteo, --embedding-dim, '128']",
        "resources={accelerators: 'a2-highgpu-8g:4', nodes: '1:4', longest: 1d}", kImage, "claims={/data: criteo}",
        "kubernetes={kind: pytorchjob, namespace: research}",
        "gke={project: my-lab-7, cluster: recsys, location: us-central1-a}"}},
  };
  return all;
}

inline Workload workload_of(const Example& example) {
  const std::string path = kSource + "/examples/" + example.workload;
  return read_workload(read_text_file(path).value(), path, {.sets = example.sets}).value();
}

// Digests and version are fixed values, so the files do not depend on the build.
inline Result<Rendered> rendered(const Workload& workload, std::string_view target, const std::string& place,
                                 const char* base = "", std::optional<ImageAccelerator> accelerator = {}) {
  RenderRequest ask{.target = find_job_target_row(target), .workload = workload, .facts = builtin_facts()};
  ask.workload_file = {to_yaml(workload), std::string(64, '1')};
  ask.program_sha256 = std::string(64, '2');
  ask.version = "systole";
  ask.place = place;
  static const std::vector<ImageRow> images = catalog_images().value();
  ask.image = {.base = base, .accelerator = accelerator, .known = images};
  return render(ask);
}

}  // namespace systole
