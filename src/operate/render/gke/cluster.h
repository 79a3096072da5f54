#pragma once
// A cluster of GKE with all that a job needs beneath it: what the commands, the Terraform file and the drawing say, in
// one place, so that they cannot say different things.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ground/catalog/provisioning.h"
#include "operate/render/hcl.h"
#include "operate/render/quota_need.h"

namespace systole {

// A network besides the cluster's own, for what the GPUs of several machines tell each other.
struct GkeNetwork {
  std::string name;     // of the VPC
  std::string profile;  // of a VPC for RDMA; empty: an ordinary one
  std::int64_t mtu = 0;
  struct Subnet {
    std::string name, range;
    std::string object;  // by which pods ask for it: a Network of the cluster
  };
  std::vector<Subnet> subnets;
};

struct GkePool {
  std::string name, machine;
  std::string gpu;  // GKE's label of it; empty: none
  std::int64_t gpus = 0;
  std::string device;                // "nvidia.com/gpu", "google.com/tpu"; empty: processors alone
  std::int64_t devices = 0;          // of a node
  std::string topology;              // of a TPU slice of several hosts, "4x4"
  std::string policy;                // of workloads, by which tpu7x is placed; empty: none
  std::int64_t nodes = 1;            // to begin with
  std::int64_t least = 0, most = 0;  // of an autoscaled pool; most 0: of a fixed size
  Provisioning terms = Provisioning::on_demand;
  std::string reservation;
  bool compact = false, queued = false, arm = false;
  std::string disk;  // type of the boot disk; empty: as GKE does

  bool autoscaled() const { return most > 0; }
};

// A driver of the cluster's that mounts something, as gcloud and as Terraform name it.
struct GkeAddon {
  const char *gcloud, *terraform;
  bool operator==(const GkeAddon&) const = default;
};

// Who the job is to Google: an account of Google's that an account of the cluster's stands for.
struct GkeIdentity {
  std::string google, name_space, account;
};

// The label of what several runs may use: the run whose script made it, and may take it away.
inline constexpr const char* kGkeMadeBy = "systole-made-by";

struct GkeCluster {
  std::string run, project, name;
  std::string location;  // of its control plane: a zone, or a region
  std::string region, zone;
  std::string network;  // and its subnet, router and NAT
  std::string driver;   // of GPUs, as Terraform names it: LATEST, DEFAULT; INSTALLATION_DISABLED: a DaemonSet does it
  std::string image;    // of nodes: COS_CONTAINERD, UBUNTU_CONTAINERD
  std::vector<GkeNetwork> networks;
  std::vector<GkePool> pools;
  std::vector<std::string> services;  // of Google's that it needs: "compute"
  std::vector<GkeAddon> addons;
  bool secrets = false;  // of Secret Manager are files of its pods
  std::vector<std::string> buckets;
  std::optional<GkeIdentity> identity;
  std::vector<std::pair<std::string, std::string>> labels;  // of what is paid for
  // What kubectl applies beside: "-f ADDRESS", "-k ADDRESS".
  std::vector<std::string> operators;   // for its kinds of objects
  std::vector<std::string> installers;  // for its GPUs

  std::string account() const { return name + "-nodes"; }  // as whom its nodes speak to the cloud
  std::string account_email() const { return account() + "@" + project + ".iam.gserviceaccount.com"; }
  // Of the cluster itself, which other runs use too: whose nodes cost what is not said, who made it is.
  std::vector<std::pair<std::string, std::string>> shared_labels() const {
    auto all = labels;
    std::erase_if(all, [](const auto& label) { return label.first == "systole-run"; });
    all.emplace_back("managed-by", "systole");
    all.emplace_back(kGkeMadeBy, run);
    return all;
  }
  // What has no labels says it as its description.
  std::string mark() const { return std::string(kGkeMadeBy) + "=" + run; }
  std::string name_space;  // of the job; empty or "default": it is there
  std::string context() const { return "gke_" + project + "_" + location + "_" + name; }  // of kubectl
  bool several_networks() const { return !networks.empty(); }
};

// The parts that are the same for all: ranges of the cluster's network, that no other network of it has.
inline constexpr const char* kGkeNodeRange = "10.0.0.0/20";
inline constexpr const char* kGkePodRange = "10.4.0.0/14";
inline constexpr const char* kGkeServiceRange = "10.8.0.0/20";
inline constexpr const char* kGkeMoreRange = "192.168.0.0/16";  // all subnets of `networks` are within
// For what GKE itself runs; jobs have pools of their own.
inline constexpr const char* kGkeSystemMachine = "n1-standard-4";
inline constexpr std::int64_t kGkeBootDiskGb = 100;  // of each node

// What the nodes of a job spend of the project's limits with their disks, and the cluster and its NAT beside them.
std::vector<QuotaSpend> gke_spends(QuotaSpend nodes);

// `made`: the comment at the head.
std::string gke_commands(const GkeCluster& cluster, const std::string& made);   // cluster.sh
std::string gke_undo(const GkeCluster& cluster, const std::string& made);       // undo.sh
std::string gke_terraform(const GkeCluster& cluster, const std::string& made);  // cluster.tf
std::string gke_networks(const GkeCluster& cluster, const std::string& made);   // networks.yaml; "" without networks

}  // namespace systole
