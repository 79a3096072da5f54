#pragma once
// What is to be run, without a word of any target: all that a workload, its plan, the catalog and what is asked agree
// on.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "describe/spec/secret.h"
#include "operate/render/render.h"

namespace systole {

struct ClusterJob {
  std::string run;  // a DNS label
  CountRange nodes;
  std::int64_t ranks_per_node = 1;
  std::int64_t gpus_per_node = 0;

  // What of the catalog it runs on (job_hardware.cc). Null or empty: nodes that only the workload describes.
  const MachineType* machine = nullptr;  // each node
  std::optional<TpuSlice> slice;         // of TPUs; its hosts are nodes
  std::int64_t slices = 1;               // joined over the data-centre network
  const Fabric* fabric = nullptr;        // what joins the machines
  std::string on;                        // words for it alone: "a3-highgpu-8g:2", "v5e:4x4"
  std::optional<Provisioning> terms;     // as they were asked for
  std::string reservation;

  // Who starts the ranks of a node: never automatic.
  KubernetesSpec::Launcher launcher = KubernetesSpec::Launcher::systole;
  std::optional<Seconds> longest;  // in one allocation
  Seconds notice{0.0};             // to save in
  std::int64_t retries = 0;
  std::optional<double> usd_per_hour;  // of all its machines together; nothing: nobody knows
  std::string folder;                  // of its runs
  std::string run_arguments;  // words of sh: what `systole run` is told besides its folder and how the nodes meet

  CountRange ranks() const { return {nodes.least * ranks_per_node, nodes.most * ranks_per_node}; }
  bool alone() const { return nodes.most == 1; }
  bool tpu() const { return slice.has_value(); }
  std::int64_t hosts_per_slice() const { return slice ? slice->hosts : nodes.most; }
  std::int64_t devices_per_node() const { return slice ? slice->chips_per_host : gpus_per_node; }
  // Of the devices of a node, as Kubernetes counts them: "nvidia.com/gpu", "google.com/tpu"; empty: there are none.
  std::string device() const { return slice ? "google.com/tpu" : gpus_per_node > 0 ? "nvidia.com/gpu" : ""; }
};

// What of the catalog a workload or its plan names, into `job`: machine to reservation, and nodes and GPUs that follow
// from it. Errors: not_found: nothing of that name; invalid: what two of them say of one thing, both named.
Status set_hardware(const RenderAsk& ask, ClusterJob& job);

// Errors: invalid, unsupported: all at once, as render tells them.
Result<ClusterJob> cluster_job(const RenderAsk& ask);

// Errors: unsupported: claims or volumes, and secrets of those kinds, on a target that has none of them; `why` says so
// of each.
Status refuse_volumes(const Workload& workload, const char* why);
Status refuse_secrets(const Workload& workload, SecretReference::Source source, const char* why, const char* hint);

// The comment at the head of each file: what made it from what.
std::string made_from(const RenderAsk& ask, const ClusterJob& job);
// plan.json where there is one, and workload.yaml, as files of a folder.
std::vector<RenderedFile> carried_files(const RenderAsk& ask);

// The targets. Each refuses what it cannot do.
Result<Rendered> render_slurm(const RenderAsk& ask, const ClusterJob& job);
Result<Rendered> render_kubernetes(const RenderAsk& ask, const ClusterJob& job);
// Needs no job: an image is for any, and machines are made for any.
Result<Rendered> render_docker(const RenderAsk& ask);
Result<Rendered> render_gcloud(const RenderAsk& ask);
Result<Rendered> render_gke(const RenderAsk& ask, const ClusterJob& job);
Result<Rendered> render_ssh(const RenderAsk& ask, const ClusterJob& job);

// What its nodes, `machine` each, cost in a zone.
JobCost cost_of(const RenderAsk& ask, const ClusterJob& job, const std::string& machine, const std::string& region,
                const std::string& zone);

}  // namespace systole
