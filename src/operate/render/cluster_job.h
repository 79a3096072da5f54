#pragma once
// A job independent of any target: everything that follows from the workload, its plan, the catalog and the arguments.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "describe/spec/secret.h"
#include "ground/base/units.h"
#include "operate/render/render.h"

namespace systole {

struct ClusterJob {
  std::string run;  // a DNS label
  CountRange nodes;
  std::int64_t ranks_per_node = 1;
  std::int64_t gpus_per_node = 0;

  // Hardware from the catalog (job_hardware.cc). Null or empty: nodes are described by the workload only.
  const MachineType* machine = nullptr;  // each node
  std::optional<TpuSlice> slice;         // for TPUs; its hosts are the nodes
  std::int64_t slices = 1;               // connected by the data-centre network
  const Fabric* fabric = nullptr;        // network between the machines
  std::string on;                        // short name of the hardware: "a3-highgpu-8g:2", "v5e:4x4"
  std::optional<Provisioning> terms;     // as requested
  std::string reservation;

  // Of workload: serve. Servers, each a pod with one device; nodes are then the machines for them.
  std::optional<CountRange> replicas;
  std::int64_t pods_per_node = 1;  // that share the devices, processors and memory of a node

  // Starts the ranks of a node; never `automatic`.
  KubernetesSpec::Launcher launcher = KubernetesSpec::Launcher::systole;
  std::optional<Seconds> longest;  // of one allocation
  Seconds notice{0.0};             // time to save
  std::int64_t retries = 0;
  std::optional<DollarsPerHour> usd_per_hour;  // of all its machines together; nothing: unknown
  std::string folder;                          // folder of its runs
  std::string run_arguments;  // arguments of `systole run` in sh words, besides the folder and the rendezvous

  CountRange ranks() const { return {nodes.least * ranks_per_node, nodes.most * ranks_per_node}; }
  bool alone() const { return nodes.most == 1; }
  bool tpu() const { return slice.has_value(); }
  std::int64_t hosts_per_slice() const { return slice ? slice->hosts : nodes.most; }
  std::int64_t devices_per_node() const { return slice ? slice->chips_per_host : gpus_per_node; }
  std::int64_t devices_per_pod() const { return devices_per_node() / pods_per_node; }
  // Kubernetes resource name of a node's devices: "nvidia.com/gpu", "google.com/tpu"; empty: none.
  std::string device() const { return slice ? "google.com/tpu" : gpus_per_node > 0 ? "nvidia.com/gpu" : ""; }
};

// Looks up the catalog entries that a workload or its plan names, and sets in `job` machine to reservation, and the
// resulting nodes and GPUs. Errors: not_found: no such entry; invalid: two sources disagree; both are named.
Status set_hardware(const RenderRequest& ask, ClusterJob& job);

// Servers of serve.canary beside so many of serve.from that its share of them is nearest to its weight, one at least; 0:
// there is no canary.
std::int64_t canary_servers(const ServeSpec& serve, const CountRange& replicas);

// Of workload: serve, after set_hardware: sets replicas (`otherwise`, where the workload has none), the nodes that hold
// them and one more (a new version starts beside the old), and the notice, which is the time to drain. Errors: invalid:
// no number of replicas; hardware of more than a machine, or chips that cannot be had one by one.
Status set_replicas(const RenderRequest& ask, ClusterJob& job, const std::optional<CountRange>& otherwise = {});
// Seconds of the notice during which new requests still come: the cluster takes a while to stop sending them.
inline constexpr Seconds kUntilUnlisted{5.0};

// A target's defaults where the workload says nothing.
struct JobDefaults {
  std::int64_t nodes = 1;
  std::optional<CountRange> replicas = {};  // of workload: serve; none: they have to be given or planned
  KubernetesSpec::Launcher launcher = KubernetesSpec::Launcher::systole;
  // Of all its nodes, for a target that makes them; nothing: unknown.
  std::function<std::optional<DollarsPerHour>(const ClusterJob&)> listed_price = {};
};
// Errors: invalid, unsupported: all at once, as render reports them.
Result<ClusterJob> cluster_job(const RenderRequest& ask, const JobDefaults& defaults);

// Refuses what a target lacks: claims and volumes; secrets from `source`. Errors: unsupported; `why` explains each.
Status refuse_volumes(const Workload& workload, const char* why);
Status refuse_secrets(const Workload& workload, SecretReference::Source source, const char* why, const char* hint);

// The head comment of each file: the tool and its inputs.
std::string made_from(const RenderRequest& ask, const ClusterJob& job);
// plan.json, if there is one, and workload.yaml, as files of a folder.
std::vector<RenderedFile> carried_files(const RenderRequest& ask);

// Cost of its nodes, each a `machine`, in a zone.
JobCost cost_of(const RenderRequest& ask, const ClusterJob& job, const std::string& machine, const std::string& region,
                const std::string& zone);

}  // namespace systole
