#pragma once
// What stands in examples/rendered: of which workload, for which target. For tests.

#include <optional>
#include <string>
#include <vector>

#include "ground/base/testing/places.h"
#include "ground/base/text_file.h"
#include "operate/render/render.h"
#include "operate/render/testing/builtin_facts.h"

namespace systole {

inline const std::string kSource = SYSTOLE_SOURCE_DIR;

inline constexpr const char* kImage =
    "image=registry.example/train@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

struct Example {
  const char* folder;
  RenderTarget target;
  const char* workload;
  std::vector<std::string> sets;
  const char* base = "";
  std::optional<ImageAccelerator> accelerator = {};
};

// A program of one's own on accelerators of the catalog, as pods.
inline std::vector<std::string> pods_on(const std::string& accelerators, std::vector<std::string> more = {}) {
  more.insert(more.begin(), {"image=registry.example/ddp@sha256:" + std::string(64, 'a'), "claims={/runs: runs}",
                             "folder=/runs", "resources.accelerators=" + accelerators});
  return more;
}

inline const std::vector<Example>& examples() {
  static const std::vector<Example> all = {
      {"slurm-model",
       RenderTarget::slurm,
       "linear.yaml",
       {"mesh={data: 4}", "resources.nodes=4", "resources.threads=2", "resources.longest=30min"}},
      {"slurm-seeds",
       RenderTarget::slurm,
       "linear.yaml",
       {"slurm.array=0:9", "slurm.at_once=2", "resources.threads=2", "resources.memory=2GiB",
        "resources.longest=10min"}},
      {"slurm-program",
       RenderTarget::slurm,
       "ddp.yaml",
       {"resources.nodes=2", "resources.gpus_per_node=8", "resources.longest=2d", "ranks.notice=2min",
        "slurm.partition=gpu", "slurm.account=lab", "slurm.qos=high", "slurm.gpu_type=h100", "slurm.constraint=ib&h100",
        "env={NCCL_DEBUG: WARN}", "folder=/shared/runs"}},
      {"slurm-budget",
       RenderTarget::slurm,
       "linear.yaml",
       {"mesh={data: 4}", "resources.nodes=4", "resources.threads=2", "resources.longest=30min", "resources.price=2.50",
        "objective.budget=100"}},
      {"kubernetes-model",
       RenderTarget::kubernetes,
       "linear.yaml",
       {"mesh={data: 4}", "resources={nodes: 4, threads: 2, memory: 4GiB}", "image=registry.example/systole:0.1",
        "claims={/runs: runs}", "folder=/runs", "kubernetes.selector={disk: fast}"}},
      {"kubernetes-program",
       RenderTarget::kubernetes,
       "ddp.yaml",
       {"resources={nodes: 2, gpus_per_node: 8, threads: 4, memory: 512GiB}", "claims={/runs: runs, /data: corpus}",
        "image=registry.example/ddp@sha256:" + std::string(64, 'a'), "folder=/runs", "kubernetes.namespace=research",
        "labels={team: vision}"}},
      {"ssh-model",
       RenderTarget::ssh,
       "linear.yaml",
       {"mesh={data: 2}", "ssh.hosts=[alice@node1, 'alice@node2:2222']", "folder=/shared/runs"}},
      {"ssh-program", RenderTarget::ssh, "ddp.yaml", {"ssh.hosts=[node1]", "resources.gpus_per_node=4"}},
      {"docker-cpu",
       RenderTarget::docker,
       "linear.yaml",
       {"image=europe-west4-docker.pkg.dev/lab/ml/linear:0.1", "labels={team: vision}"}},
      {"docker-cuda",
       RenderTarget::docker,
       "linear.yaml",
       {"image=registry.example/linear:0.1", "resources.gpus_per_node=8"}},
      {"docker-tpu",
       RenderTarget::docker,
       "linear.yaml",
       {"image=europe-west4-docker.pkg.dev/lab/ml/linear-tpu:0.1"},
       "",
       ImageAccelerator::tpu},
      {"docker-program",
       RenderTarget::docker,
       "ddp.yaml",
       {"image=europe-west4-docker.pkg.dev/lab/ml/ddp:0.1"},
       "pytorch/pytorch:2.13.0-cuda13.0-cudnn9-runtime"},
      {"kubernetes-h100",
       RenderTarget::kubernetes,
       "ddp.yaml",
       {"name=h100", "resources={accelerators: 'h100:16', provisioning: spot}", "ranks.notice=10s", kImage,
        "claims={/runs: runs, /data: corpus}", "folder=/runs"}},
      {"kubernetes-torchrun",
       RenderTarget::kubernetes,
       "ddp.yaml",
       {"resources={accelerators: 'a2-highgpu-8g:2', threads: 8, memory: 512GiB}", kImage,
        "kubernetes.launcher=torchrun", "env={OMP_NUM_THREADS: '8'}"}},
      {"kubernetes-jobset-v5e",
       RenderTarget::kubernetes,
       "ddp.yaml",
       {"name=v5e", "command=[python3, train.py]", "resources={accelerators: 'v5e:4x4'}", kImage,
        "claims={/runs: runs}", "folder=/runs"}},
      {"kubernetes-multislice-v5p",
       RenderTarget::kubernetes,
       "ddp.yaml",
       {"name=v5p", "command=[python3, train.py]",
        "resources={accelerators: v5p-32, slices: 4, provisioning: reserved, reservation: big-one}", kImage,
        "kubernetes.launcher=program"}},
      {"kubernetes-pytorchjob",
       RenderTarget::kubernetes,
       "ddp.yaml",
       {"resources={accelerators: 'a2-highgpu-8g:2'}", kImage, "kubernetes.kind=pytorchjob"}},
      {"kubernetes-pytorchjob-elastic",
       RenderTarget::kubernetes,
       "ddp.yaml",
       {"resources={accelerators: 'a2-highgpu-8g:4', nodes: '1:4'}", kImage, "kubernetes.kind=pytorchjob"}},
      {"kubernetes-jaxjob",
       RenderTarget::kubernetes,
       "ddp.yaml",
       {"command=[python3, train.py]", "resources={accelerators: 'h200:16', provisioning: flex-start}", kImage,
        "kubernetes.kind=jaxjob"}},
      {"kubernetes-trainjob",
       RenderTarget::kubernetes,
       "ddp.yaml",
       {"resources={accelerators: 'h100:16'}", kImage, "kubernetes.kind=trainjob"}},
      {"slurm-elastic", RenderTarget::slurm, "ddp.yaml", {"resources.nodes=2:8", "resources.longest=1d"}},
      // Networks of each family of machines.
      {"kubernetes-t4", RenderTarget::kubernetes, "ddp.yaml",
       pods_on("t4:8@n1-*+4xt4", {"resources={threads: 4, memory: 64GiB}"})},
      {"kubernetes-l4", RenderTarget::kubernetes, "ddp.yaml", pods_on("g2-standard-96:2")},
      {"kubernetes-a2", RenderTarget::kubernetes, "ddp.yaml", pods_on("a2-highgpu-8g:2")},
      {"kubernetes-a3-mega", RenderTarget::kubernetes, "ddp.yaml", pods_on("a3-megagpu-8g:2")},
      {"kubernetes-a3-ultra", RenderTarget::kubernetes, "ddp.yaml", pods_on("a3-ultragpu-8g:2")},
      {"kubernetes-a4", RenderTarget::kubernetes, "ddp.yaml", pods_on("a4-highgpu-8g:2")},
      {"kubernetes-a4x", RenderTarget::kubernetes, "ddp.yaml", pods_on("a4x-highgpu-4g:2")},
      {"kubernetes-v6e", RenderTarget::kubernetes, "ddp.yaml", pods_on("v6e:4x4")},
      {"slurm-a3-mega", RenderTarget::slurm, "ddp.yaml", {"resources.accelerators=a3-megagpu-8g:2"}},
      // What stands around a job.
      {"kubernetes-queue", RenderTarget::kubernetes, "ddp.yaml",
       pods_on("a3-megagpu-8g:2",
               {"kubernetes={queue: research, priority: high, priority_value: 1000, topology: preferred:block, "
                "queue_nodes: 8, cohort: labs, queued: true}",
                "resources.longest=2d"})},
      {"kubernetes-queued", RenderTarget::kubernetes, "ddp.yaml",
       pods_on("a3-highgpu-8g:2", {"kubernetes.queued=true", "resources={longest: 1d, provisioning: flex-start}"})},
      {"kubernetes-volumes",
       RenderTarget::kubernetes,
       "ddp.yaml",
       {"image=registry.example/ddp@sha256:" + std::string(64, 'a'), "folder=/runs",
        "resources={threads: 4, memory: 64GiB, gpus_per_node: 1}",
        "volumes={/runs: {filestore: zonal, size: 10TiB}, /data: {bucket: my-corpus, read_only: true}, /fast: {lustre: "
        "my-project/us-central1-a/fast, size: 9000GiB, address: 10.0.0.3/lfs}, /scratch: {local_ssd: true, size: "
        "300GiB}}",
        "secrets={HF_TOKEN: 'kubernetes:hub/token', WANDB_API_KEY: 'secret-manager:my-project/wandb'}",
        "kubernetes={gcp_service_account: trainer@my-project.iam.gserviceaccount.com, metrics_port: 9090}"}},
      {"gke-model",
       RenderTarget::gke,
       "linear.yaml",
       {"mesh={data: 4}", "resources={nodes: 4, threads: 4, memory: 12GiB, longest: 2h}", kImage,
        "claims={/runs: runs}", "folder=/runs", "gke={project: my-lab-7, cluster: train, location: us-central1-a}"}},
      {"gke-h100",
       RenderTarget::gke,
       "ddp.yaml",
       {"name=h100", "resources={accelerators: 'a3-highgpu-8g:2', longest: 2d}", kImage,
        "claims={/runs: runs, /data: corpus}", "folder=/runs", "labels={team: vision}",
        "gke={project: my-lab-7, cluster: train, location: us-central1, zone: us-central1-a}"}},
      {"gke-v5e-spot",
       RenderTarget::gke,
       "ddp.yaml",
       {"name=v5e", "command=[python3, train.py]", "resources={accelerators: 'v5e:4x4', provisioning: spot}",
        "ranks.notice=10s", kImage, "claims={/runs: runs}", "folder=/runs",
        "gke={project: my-lab-7, cluster: train, location: us-west4-a}"}},
      {"gke-dlrm",
       RenderTarget::gke,
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

// Digests and version are made up, so that the files are the same for every build.
inline Result<Rendered> rendered(const Workload& workload, RenderTarget target, const std::string& place,
                                 const char* base = "", std::optional<ImageAccelerator> accelerator = {}) {
  RenderAsk ask{.target = target, .workload = workload, .facts = builtin_facts()};
  ask.workload_file = {to_yaml(workload), std::string(64, '1')};
  ask.program_sha256 = std::string(64, '2');
  ask.version = "systole";
  ask.place = place;
  static const std::vector<ImageRow> images = catalog_images().value();
  ask.image = {.base = base, .accelerator = accelerator, .known = images};
  return render(ask);
}

}  // namespace systole
