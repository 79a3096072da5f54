// cluster.tf: creates the same as cluster.sh, for users of Terraform. Objects within the cluster (networks.yaml,
// installers) need kubectl.
#include <fmt/format.h>

#include "operate/render/names.h"
#include "operate/targets/gke/cluster.h"

namespace systole {
namespace {

HclValue refer(const std::string& path) { return HclValue::reference(path); }

// A Terraform name for one of ours.
std::string id_of(std::string name) {
  for (char& c : name)
    if (c == '-' || c == '.') c = '_';
  return name[0] >= '0' && name[0] <= '9' ? "_" + name : name;
}

// A Google service must be enabled before its resources are created; no reference implies that order.
HclValue after(const std::string& service) { return HclValue::list({refer("google_project_service." + service)}); }

class File {
 public:
  explicit File(const GkeCluster& cluster) : c(cluster) {}

  HclBlock& resource(const char* type, const std::string& id, std::string comment = "") {
    blocks.push_back({"resource", {type, id}, {}, {}, std::move(comment)});
    return blocks.back();
  }
  // With a name and a project, like most resources.
  HclBlock& named(const char* type, const std::string& id, const std::string& name, std::string comment = "") {
    return resource(type, id, std::move(comment)).set("project", refer("var.project")).set("name", name);
  }
  static HclValue labels(const std::vector<std::pair<std::string, std::string>>& of) {
    std::vector<std::pair<std::string, HclValue>> all;
    for (const auto& [key, value] : of) all.emplace_back(key, value);
    return HclValue::map(all);
  }

  const GkeCluster& c;
  std::vector<HclBlock> blocks;
};

void add_head(File& f) {
  HclBlock& terraform = f.blocks.emplace_back(HclBlock{"terraform", {}});
  terraform.add("required_providers",
                {{"google", HclValue::map({{"source", "hashicorp/google"}, {"version", "~> 7.45"}})}});
  f.blocks.push_back({"variable", {"project"}, {{"type", refer("string")}, {"default", f.c.project}}});
  for (const std::string& api : f.c.services)
    f.resource("google_project_service", api)
        .set("project", refer("var.project"))
        .set("service", api + ".googleapis.com")
        .set("disable_on_destroy", false);
}

void add_own_network(File& f) {
  f.named("google_compute_network", "main", f.c.network,
          "Nodes have no address of the internet; they reach it through NAT, and Google directly.")
      .set("auto_create_subnetworks", false)
      .set("depends_on", after("compute"));
  HclBlock& subnet = f.named("google_compute_subnetwork", "main", f.c.network);
  subnet.set("region", f.c.region).set("network", refer("google_compute_network.main.id"));
  subnet.set("ip_cidr_range", kGkeNodeRange).set("private_ip_google_access", true);
  subnet.add("secondary_ip_range", {{"range_name", "pods"}, {"ip_cidr_range", kGkePodRange}});
  subnet.add("secondary_ip_range", {{"range_name", "services"}, {"ip_cidr_range", kGkeServiceRange}});
  f.named("google_compute_router", "main", f.c.network)
      .set("region", f.c.region)
      .set("network", refer("google_compute_network.main.id"));
  f.named("google_compute_router_nat", "main", f.c.network)
      .set("region", f.c.region)
      .set("router", refer("google_compute_router.main.name"))
      .set("nat_ip_allocate_option", "AUTO_ONLY")
      .set("source_subnetwork_ip_ranges_to_nat", "ALL_SUBNETWORKS_ALL_IP_RANGES");
}

void add_inside_rule(File& f, const std::string& id, const std::string& network, std::vector<HclValue> ranges) {
  HclBlock& rule = f.named("google_compute_firewall", id, network + "-inside");
  rule.set("network", refer("google_compute_network." + id + ".id")).set("direction", "INGRESS");
  rule.set("source_ranges", HclValue::list(ranges));
  for (const char* protocol : {"tcp", "udp", "icmp"}) rule.add("allow", {{"protocol", protocol}});
}

void add_more_networks(File& f) {
  for (const GkeNetwork& each : f.c.networks) {
    const std::string id = id_of(each.name);
    HclBlock& network = f.named("google_compute_network", id, each.name);
    network.set("auto_create_subnetworks", false).set("mtu", each.mtu);
    if (!each.profile.empty()) {
      const std::string profile = "/global/networkProfiles/" + each.profile;
      network.set("network_profile", HclValue::joined("var.project", profile, "projects/"));
    }
    network.set("depends_on", after("compute"));
    for (const GkeNetwork::Subnet& subnet : each.subnets)
      f.named("google_compute_subnetwork", id_of(subnet.name), subnet.name)
          .set("region", f.c.region)
          .set("network", refer("google_compute_network." + id + ".id"))
          .set("ip_cidr_range", subnet.range);
    if (each.profile.empty()) add_inside_rule(f, id, each.name, {kGkeMoreRange});
  }
}

void add_account(File& f) {
  f.resource("google_service_account", "nodes", "Nodes may write logs and metrics and read images, no more.")
      .set("project", refer("var.project"))
      .set("account_id", f.c.account())
      .set("display_name", "nodes of " + f.c.name)
      .set("depends_on", after("iam"));
  f.resource("google_project_iam_member", "nodes")
      .set("project", refer("var.project"))
      .set("role", "roles/container.defaultNodeServiceAccount")
      .set("member", refer("google_service_account.nodes.member"));
}

HclBlock& add_node_config(HclBlock& block, const std::string& machine,
                          const std::vector<std::pair<std::string, std::string>>& labels) {
  HclBlock& config = block.add("node_config");
  config.set("machine_type", machine).set("disk_size_gb", kGkeBootDiskGb);
  config.set("service_account", refer("google_service_account.nodes.email"));
  config.set("oauth_scopes", HclValue::list({"https://www.googleapis.com/auth/cloud-platform"}));
  config.set("resource_labels", File::labels(labels));
  config.add("workload_metadata_config", {{"mode", "GKE_METADATA"}});
  return config;
}

void add_cluster(File& f) {
  HclBlock& cluster = f.named("google_container_cluster", "main", f.c.name);
  cluster.set("location", f.c.location);
  if (f.c.location != f.c.zone) cluster.set("node_locations", HclValue::list({f.c.zone}));
  cluster.set("network", refer("google_compute_network.main.id"));
  cluster.set("subnetwork", refer("google_compute_subnetwork.main.id"));
  cluster.set("initial_node_count", 1).set("datapath_provider", "ADVANCED_DATAPATH");
  if (f.c.several_networks()) cluster.set("enable_multi_networking", true);
  cluster.set("resource_labels", File::labels(f.c.shared_labels())).set("deletion_protection", false);
  cluster.add("release_channel", {{"channel", "REGULAR"}});
  cluster.add("private_cluster_config", {{"enable_private_nodes", true}});
  cluster.add("ip_allocation_policy",
              {{"cluster_secondary_range_name", "pods"}, {"services_secondary_range_name", "services"}});
  cluster.add("workload_identity_config", {{"workload_pool", HclValue::joined("var.project", ".svc.id.goog")}});
  if (!f.c.addons.empty()) {
    HclBlock& addons = cluster.add("addons_config");
    for (const GkeAddon& addon : f.c.addons) addons.add(addon.terraform, {{"enabled", true}});
  }
  if (f.c.secrets) cluster.add("secret_manager_config", {{"enabled", true}});
  add_node_config(cluster, kGkeSystemMachine, f.c.shared_labels());
  cluster.set("depends_on",
              HclValue::list({refer("google_project_service.container"), refer("google_project_iam_member.nodes")}));
}

void add_terms(HclBlock& config, const GkePool& pool) {
  switch (pool.terms) {
    case Provisioning::spot:
      config.set("spot", true);
      config.add("taint", {{"key", "cloud.google.com/gke-spot"}, {"value", "true"}, {"effect", "NO_SCHEDULE"}});
      break;
    case Provisioning::flex_start:
      config.set("flex_start", true);
      config.add("reservation_affinity", {{"consume_reservation_type", "NO_RESERVATION"}});
      break;
    case Provisioning::reservation:
      config.add("reservation_affinity", {{"consume_reservation_type", "SPECIFIC_RESERVATION"},
                                          {"key", "compute.googleapis.com/reservation-name"},
                                          {"values", HclValue::list({pool.reservation})}});
      break;
    default: break;
  }
}

void add_gpus(HclBlock& config, const GkePool& pool, const std::string& driver) {
  HclBlock& gpu = config.add("guest_accelerator", {{"type", pool.gpu}, {"count", pool.gpus}});
  gpu.add("gpu_driver_installation_config", {{"gpu_driver_version", driver}});
  config.add("gvnic", {{"enabled", true}});
}

void add_pool_networks(File& f, HclBlock& pool) {
  if (!f.c.several_networks()) return;
  HclBlock& config = pool.add("network_config", {{"enable_private_nodes", true}});
  for (const GkeNetwork& network : f.c.networks)
    for (const GkeNetwork::Subnet& subnet : network.subnets)
      config.add("additional_node_network_configs",
                 {{"network", refer("google_compute_network." + id_of(network.name) + ".name")},
                  {"subnetwork", refer("google_compute_subnetwork." + id_of(subnet.name) + ".name")}});
}

void add_pool(File& f, const GkePool& pool) {
  if (!pool.policy.empty()) {
    HclBlock& policy = f.named("google_compute_resource_policy", id_of(pool.policy), pool.policy);
    policy.set("region", f.c.region).set("depends_on", after("compute"));
    policy.add("workload_policy", {{"type", "HIGH_THROUGHPUT"}, {"accelerator_topology", pool.topology}});
  }
  HclBlock& block = f.named("google_container_node_pool", id_of(pool.name), pool.name);
  block.set("cluster", refer("google_container_cluster.main.name")).set("location", f.c.location);
  block.set("node_locations", HclValue::list({f.c.zone}));
  if (pool.autoscaled()) {
    block.set("initial_node_count", pool.nodes);
    HclBlock& range = block.add("autoscaling", {{"min_node_count", pool.least}, {"max_node_count", pool.most}});
    if (pool.terms == Provisioning::flex_start) range.set("location_policy", "ANY");
  } else {
    block.set("node_count", pool.nodes);
  }
  HclBlock& config = add_node_config(block, pool.machine, f.c.labels);
  config.set("image_type", f.c.image);
  if (!pool.disk.empty()) config.set("disk_type", pool.disk);
  if (pool.gpus > 0) add_gpus(config, pool, f.c.driver);
  add_terms(config, pool);
  if (pool.terms == Provisioning::flex_start) block.add("management", {{"auto_repair", false}});
  if (pool.compact || !pool.topology.empty()) {
    HclBlock& placement = block.add("placement_policy", {{"type", "COMPACT"}});
    if (!pool.topology.empty()) placement.set("tpu_topology", pool.topology);
    if (!pool.policy.empty())
      placement.set("policy_name", refer("google_compute_resource_policy." + id_of(pool.policy) + ".name"));
  }
  if (pool.queued) block.add("queued_provisioning", {{"enabled", true}});
  add_pool_networks(f, block);
}

void add_buckets(File& f) {
  for (const std::string& bucket : f.c.buckets) {
    HclBlock& block = f.named("google_storage_bucket", id_of(bucket), bucket)
                          .set("location", f.c.region)
                          .set("uniform_bucket_level_access", true)
                          .set("public_access_prevention", "enforced")
                          .set("labels", File::labels(f.c.labels))
                          .set("depends_on", after("storage"));
    const auto rule = [&block](const char* action, const char* condition, std::int64_t days) {
      HclBlock& lifecycle = block.add("lifecycle_rule");
      lifecycle.add("action", {{"type", action}});
      lifecycle.add("condition", {{condition, days}});
    };
    rule("AbortIncompleteMultipartUpload", "age", kUploadDays);
    rule("Delete", "days_since_noncurrent_time", kNoncurrentDays);
  }
}

void add_identity(File& f) {
  if (!f.c.identity) return;
  const std::string who = fmt::format(".svc.id.goog[{}/{}]", f.c.identity->name_space, f.c.identity->account);
  f.resource("google_service_account_iam_member", "job", "The job is this account to Google, without a key.")
      .set("service_account_id",
           fmt::format("projects/{}/serviceAccounts/{}", gcp_project_of(f.c.identity->google), f.c.identity->google))
      .set("role", "roles/iam.workloadIdentityUser")
      .set("member", HclValue::joined("var.project", who, "serviceAccount:"))
      .set("depends_on", HclValue::list({refer("google_container_cluster.main")}));  // it creates the pool
}

}  // namespace

std::string gke_terraform(const GkeCluster& cluster, const std::string& made) {
  File f(cluster);
  add_head(f);
  add_own_network(f);
  add_inside_rule(f, "main", cluster.network, {kGkeNodeRange, kGkePodRange});
  add_more_networks(f);
  add_account(f);
  add_cluster(f);
  for (const GkePool& pool : cluster.pools) add_pool(f, pool);
  add_buckets(f);
  add_identity(f);
  return made + to_hcl(f.blocks);
}

}  // namespace systole
