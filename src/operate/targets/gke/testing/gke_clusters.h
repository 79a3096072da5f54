#pragma once
// GKE clusters for tests: one for each variant.

#include <string>
#include <vector>

#include "operate/targets/gke/cluster.h"

namespace systole {

inline GkeCluster plain() {
  GkeCluster c;
  c.run = "ddp";
  c.project = "my-lab-7";
  c.name = "train";
  c.location = c.zone = "us-central1-a";
  c.region = "us-central1";
  c.network = "train";
  c.driver = "LATEST";
  c.image = "COS_CONTAINERD";
  c.services = {"compute", "container", "iam", "logging", "monitoring"};
  c.labels = {{"systole-run", "ddp"}, {"team", "vision"}};
  c.pools = {{.name = "ddp", .machine = "n1-standard-8", .nodes = 2}};
  return c;
}

inline GkePool gpus() {
  GkePool pool{.name = "ddp", .machine = "a3-highgpu-8g"};
  pool.gpu = "nvidia-h100-80gb";
  pool.gpus = pool.devices = 8;
  pool.device = "nvidia.com/gpu";
  pool.nodes = 2;
  return pool;
}

// One for each variant.
inline std::vector<GkeCluster> clusters() {
  std::vector<GkeCluster> all{plain()};
  GkeCluster tcpx = plain();
  tcpx.pools = {gpus()};
  tcpx.pools[0].compact = true;
  for (const char* n : {"1", "2", "3", "4"}) {
    const std::string name = std::string("train-gpu-") + n;
    tcpx.networks.push_back({name, "", 8244, {{name, std::string("192.168.") + n + ".0/24", std::string("vpc") + n}}});
  }
  tcpx.installers = {"-f https://example.com/installer.yaml"};
  tcpx.operators = {"-f https://example.com/jobset.yaml"};
  all.push_back(tcpx);
  GkeCluster rdma = plain();
  rdma.location = "us-central1";  // a region
  rdma.pools = {gpus()};
  rdma.pools[0].terms = Provisioning::flex_start;
  rdma.pools[0].nodes = 0;
  rdma.pools[0].most = 4;
  rdma.pools[0].queued = true;
  rdma.pools[0].disk = "hyperdisk-balanced";
  rdma.networks = {{"train-rdma",
                    "us-central1-a-vpc-roce",
                    8896,
                    {{"train-rdma-0", "192.168.2.0/24", "rdma-0"}, {"train-rdma-1", "192.168.3.0/24", "rdma-1"}}}};
  rdma.driver = "INSTALLATION_DISABLED";
  rdma.image = "UBUNTU_CONTAINERD";
  all.push_back(rdma);
  GkeCluster slices = plain();
  GkePool tpu{.name = "ddp-0", .machine = "tpu7x-standard-4t"};
  tpu.device = "google.com/tpu";
  tpu.devices = 4;
  tpu.nodes = 16;
  tpu.topology = "4x4x4";
  tpu.policy = "tpu7x-4x4x4";
  tpu.terms = Provisioning::spot;
  slices.pools = {tpu, tpu};
  slices.pools[1].name = "ddp-1";
  slices.pools[1].policy = "";
  all.push_back(slices);
  GkeCluster elastic = plain();
  elastic.pools = {gpus()};
  elastic.pools[0].least = elastic.pools[0].nodes = 1;
  elastic.pools[0].most = 4;
  elastic.pools[0].terms = Provisioning::reservation;
  elastic.pools[0].reservation = "mine";
  elastic.services.insert(elastic.services.end(), {"storage", "secretmanager"});
  elastic.secrets = true;
  elastic.addons = {{"GcsFuseCsiDriver", "gcs_fuse_csi_driver_config"},
                    {"GcpFilestoreCsiDriver", "gcp_filestore_csi_driver_config"},
                    {"LustreCsiDriver", "lustre_csi_driver_config"},
                    {"ParallelstoreCsiDriver", "parallelstore_csi_driver_config"}};
  elastic.buckets = {"my-corpus"};
  elastic.identity = {"trainer@my-lab-7.iam.gserviceaccount.com", "research", "trainer"};
  all.push_back(elastic);
  return all;
}

}  // namespace systole
