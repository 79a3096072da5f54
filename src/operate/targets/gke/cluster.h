#pragma once
// A GKE cluster with everything a job needs. The commands, the Terraform file and the drawing are all made from this
// one description, so they agree.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ground/catalog/provisioning.h"
#include "operate/render/cluster_job.h"
#include "operate/render/quota_need.h"
#include "operate/targets/gke/hcl.h"

namespace systole {

// A network besides the cluster's own, for traffic between GPUs of several machines.
struct GkeNetwork {
  std::string name;     // of the VPC
  std::string profile;  // of a VPC for RDMA; empty: an ordinary VPC
  std::int64_t mtu = 0;
  struct Subnet {
    std::string name, range;
    std::string object;  // name of the cluster's Network object, which pods request
  };
  std::vector<Subnet> subnets;
};

struct GkePool {
  std::string name, machine;
  std::string gpu;  // GKE's label of the GPU; empty: none
  std::int64_t gpus = 0;
  std::string device;                // "nvidia.com/gpu", "google.com/tpu"; empty: processors only
  std::int64_t devices = 0;          // per node
  std::string topology;              // of a multi-host TPU slice, "4x4"
  std::string policy;                // workload policy that places tpu7x; empty: none
  std::int64_t nodes = 1;            // initial number
  std::int64_t least = 0, most = 0;  // bounds of autoscaling; most 0: fixed size
  Provisioning terms = Provisioning::on_demand;
  std::string reservation;
  bool compact = false, queued = false, arm = false;
  std::string disk;  // type of the boot disk; empty: GKE's default

  bool autoscaled() const { return most > 0; }
};

// A driver of the cluster for mounts, by its names in gcloud and in Terraform.
struct GkeAddon {
  const char *gcloud, *terraform;
  bool operator==(const GkeAddon&) const = default;
};

// The job's Google identity: a Google service account, impersonated by an account of the cluster.
struct GkeIdentity {
  std::string google, name_space, account;
};

// Label of shared resources: the run whose script created them, and may delete them.
inline constexpr const char* kGkeMadeBy = "systole-made-by";

struct GkeCluster {
  std::string run, project, name;
  std::string location;  // of its control plane: a zone or a region
  std::string region, zone;
  std::string network;  // also names its subnet, router and NAT
  std::string driver;   // for GPUs, in Terraform's words: LATEST, DEFAULT; INSTALLATION_DISABLED: by a DaemonSet
  std::string image;    // of nodes: COS_CONTAINERD, UBUNTU_CONTAINERD
  std::vector<GkeNetwork> networks;
  std::vector<GkePool> pools;
  std::vector<std::string> services;  // Google services that it needs: "compute"
  std::vector<GkeAddon> addons;
  bool secrets = false;  // secrets of Secret Manager are files of its pods
  std::vector<std::string> buckets;
  std::optional<GkeIdentity> identity;
  std::vector<std::pair<std::string, std::string>> labels;  // billing labels
  // Arguments of kubectl apply: "-f ADDRESS", "-k ADDRESS".
  std::vector<std::string> operators;   // for custom kinds of objects
  std::vector<std::string> installers;  // for GPU drivers

  std::string account() const { return name + "-nodes"; }  // service account of its nodes
  std::string account_email() const { return account() + "@" + project + ".iam.gserviceaccount.com"; }
  // Labels of the cluster itself, which other runs use too: the creator, but no cost labels of a run.
  std::vector<std::pair<std::string, std::string>> shared_labels() const {
    auto all = labels;
    std::erase_if(all, [](const auto& label) { return label.first == "systole-run"; });
    all.emplace_back("managed-by", "systole");
    all.emplace_back(kGkeMadeBy, run);
    return all;
  }
  // The description of resources without labels.
  std::string mark() const { return std::string(kGkeMadeBy) + "=" + run; }
  std::string name_space;  // the job's namespace; empty or "default": it exists
  std::string context() const { return "gke_" + project + "_" + location + "_" + name; }  // of kubectl
  bool several_networks() const { return !networks.empty(); }
};

// Fixed for all clusters: address ranges of the cluster's network, which are unique within it.
inline constexpr const char* kGkeNodeRange = "10.0.0.0/20";
inline constexpr const char* kGkePodRange = "10.4.0.0/14";
inline constexpr const char* kGkeServiceRange = "10.8.0.0/20";
inline constexpr const char* kGkeMoreRange = "192.168.0.0/16";  // contains all subnets of `networks`
// For GKE's own pods; jobs have their own pools.
inline constexpr const char* kGkeSystemMachine = "n1-standard-4";
inline constexpr std::int64_t kGkeBootDiskGb = 100;  // of each node
// Of a bucket that is made: until parts of an upload that was broken off, and versions that were replaced, are deleted.
inline constexpr std::int64_t kUploadDays = 7, kNoncurrentDays = 30;

// The quota use of a job's nodes with their disks, and of the cluster and its NAT.
std::vector<QuotaSpend> gke_spends(QuotaSpend nodes);

// What an hour of a job's nodes costs by the catalog, on the terms that it asks for. Nothing: a price, or the machine,
// is unknown.
std::optional<DollarsPerHour> gke_price(const RenderRequest& ask, const ClusterJob& job);

// Errors: of the pods, and of machines that GKE does not have.
Result<Rendered> render_gke(const RenderRequest& ask, const ClusterJob& job);

// `made`: the head comment.
std::string gke_commands(const GkeCluster& cluster, const std::string& made);   // cluster.sh
std::string gke_undo(const GkeCluster& cluster, const std::string& made);       // undo.sh
std::string gke_terraform(const GkeCluster& cluster, const std::string& made);  // cluster.tf
std::string gke_networks(const GkeCluster& cluster, const std::string& made);   // networks.yaml; "" without networks

}  // namespace systole
