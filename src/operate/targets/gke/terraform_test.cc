// Terraform of a GKE cluster, checked against the provider's schema.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "ground/base/testing/places.h"
#include "ground/process/capture.h"
#include "operate/targets/gke/testing/gke_clusters.h"
#include "operate/targets/gke/testing/hcl_reader.h"
#include "operate/targets/gke/testing/terraform_schema.h"

namespace systole {
namespace {

const std::string kSchemas = std::string(SYSTOLE_SOURCE_DIR) + "/data/schemas/";

const TerraformSchema& provider() {
  static const TerraformSchema schema(kSchemas + "terraform-google-7.45.0.schema.json");
  return schema;
}

std::vector<ReadBlock> resources(const GkeCluster& cluster) {
  std::vector<ReadBlock> all = HclReader::read(gke_terraform(cluster, "# made\n"));
  std::erase_if(all, [](const ReadBlock& b) { return b.type != "resource"; });
  return all;
}

TEST(GkeTerraform, is_what_the_provider_takes) {
  std::set<std::string> types;
  for (const GkeCluster& cluster : clusters())
    for (const ReadBlock& resource : resources(cluster)) {
      EXPECT_EQ(provider().wrong(resource), "") << resource.labels[1];
      types.insert(resource.labels[0]);
    }
  EXPECT_EQ(types.size(), 13U) << "of each kind that is rendered there is one here";
}

// The schema check must be able to fail.
TEST(GkeTerraform, what_the_provider_refuses_is_found) {
  const std::vector<ReadBlock> all = resources(clusters()[1]);
  const auto of_type = [&](const char* type) {
    return *std::ranges::find_if(all, [&](const ReadBlock& b) { return b.labels[0] == type; });
  };
  int mutants = 0;
  const auto refused = [&](ReadBlock block, const std::string& said) {
    EXPECT_EQ(provider().wrong(block), said);
    ++mutants;
  };
  for (const ReadBlock& resource : all) {
    ReadBlock unknown = resource;
    unknown.attributes["no_such"] = 1;
    refused(unknown, resource.labels[0] + " has no attribute no_such\n");
    ReadBlock strange = resource;
    strange.blocks.push_back({"no_such", {}, nlohmann::json::object(), {}});
    refused(strange, resource.labels[0] + " has no block no_such\n");
  }
  ReadBlock pool = of_type("google_container_node_pool");
  pool.attributes.erase("cluster");
  refused(pool, "google_container_node_pool.cluster is missing\n");
  pool = of_type("google_container_node_pool");
  pool.attributes["node_count"] = "two";
  refused(pool, "google_container_node_pool.node_count is of another type\n");
  pool = of_type("google_container_node_pool");
  pool.attributes["operation"] = "x";
  refused(pool, "google_container_node_pool.operation is computed\n");
  pool = of_type("google_container_node_pool");
  pool.blocks.push_back(pool.blocks[0]);
  refused(pool, "google_container_node_pool.node_config is there too often\n");
  ReadBlock nat = of_type("google_compute_router_nat");
  nat.attributes["source_subnetwork_ip_ranges_to_nat"] = "ALL";
  refused(nat, "google_compute_router_nat.source_subnetwork_ip_ranges_to_nat is never ALL\n");
  ReadBlock rule = of_type("google_compute_firewall");
  rule.attributes["source_ranges"] = "10.0.0.0/8";
  refused(rule, "google_compute_firewall.source_ranges is of another type\n");
  EXPECT_GT(mutants, 40);
}

void collect(const nlohmann::json& value, std::vector<std::string>& paths) {
  if (value.is_object() && value.contains("refers")) paths.push_back(value["refers"]);
  if (value.is_object() && value.contains("template"))
    for (std::size_t i = 1; i < value["template"].size(); i += 2) paths.push_back(value["template"][i]);
  if (value.is_structured())
    for (const auto& item : value) collect(item, paths);
}
void collect(const ReadBlock& block, std::vector<std::string>& paths) {
  collect(block.attributes, paths);
  for (const ReadBlock& inner : block.blocks) collect(inner, paths);
}

TEST(GkeTerraform, refers_to_what_is_there) {
  int seen = 0;
  for (const GkeCluster& cluster : clusters()) {
    const std::vector<ReadBlock> all = resources(cluster);
    std::set<std::string> there{"var.project"};
    for (const ReadBlock& block : all)
      EXPECT_TRUE(there.insert(block.labels[0] + "." + block.labels[1]).second) << "twice: " << block.labels[1];
    std::vector<std::string> paths;
    for (const ReadBlock& block : all) collect(block, paths);
    for (const std::string& path : paths) {
      ++seen;
      if (there.contains(path)) continue;
      const std::size_t dot = path.rfind('.');
      EXPECT_TRUE(there.contains(path.substr(0, dot))) << path;
      EXPECT_TRUE(provider().has(path.substr(0, path.find('.')), path.substr(dot + 1))) << path;
    }
  }
  EXPECT_GT(seen, 150);
}

// A resource needs its service enabled: without another reference to the service, it has depends_on.
TEST(GkeTerraform, waits_for_services) {
  const std::map<std::string, std::string> service = {{"google_compute_network", "compute"},
                                                      {"google_compute_resource_policy", "compute"},
                                                      {"google_service_account", "iam"},
                                                      {"google_container_cluster", "container"},
                                                      {"google_storage_bucket", "storage"}};
  std::set<std::string> seen;
  for (const GkeCluster& cluster : clusters())
    for (const ReadBlock& block : resources(cluster)) {
      const auto of = service.find(block.labels[0]);
      if (of == service.end()) continue;
      seen.insert(of->first);
      std::vector<std::string> waits;
      if (block.attributes.contains("depends_on")) collect(block.attributes["depends_on"], waits);
      EXPECT_NE(std::ranges::find(waits, "google_project_service." + of->second), waits.end()) << block.labels[1];
    }
  EXPECT_EQ(seen.size(), service.size());
}

// A reviewer's checks: nothing is open to the internet, nodes have no public address, and have their own service
// account.
TEST(GkeTerraform, is_closed_to_the_internet) {
  for (const GkeCluster& cluster : clusters()) {
    EXPECT_EQ(gke_terraform(cluster, "").find("0.0.0.0/0"), std::string::npos);
    EXPECT_EQ(gke_commands(cluster, "").find("0.0.0.0/0"), std::string::npos);
    const auto is = [](const ReadBlock& block, const char* type, const char* name, const nlohmann::json& value) {
      const std::string& own = block.labels.empty() ? block.type : block.labels[0];
      EXPECT_TRUE(own != type || block.attributes[name] == value) << own << "." << name;
    };
    for (const ReadBlock& block : resources(cluster)) {
      is(block, "google_compute_network", "auto_create_subnetworks", false);
      is(block, "google_storage_bucket", "public_access_prevention", "enforced");
      for (const ReadBlock& inner : block.blocks) {
        is(inner, "node_config", "service_account", {{"refers", "google_service_account.nodes.email"}});
        is(inner, "private_cluster_config", "enable_private_nodes", true);
      }
    }
  }
}

TEST(GkeTerraform, is_as_terraform_formats_it) {
  if (!find_program("terraform").ok()) GTEST_SKIP() << "terraform is not on this machine";
  for (const GkeCluster& cluster : clusters()) {
    Command fmt;
    fmt.argv = {"terraform", "fmt", "-check", "-diff", "-"};
    fmt.env = {{"CHECKPOINT_DISABLE", "1"}};
    CaptureOptions options;
    options.input = gke_terraform(cluster, "# made\n");
    const Captured said = run_captured(fmt, options).value();
    EXPECT_EQ(said.exit.code, 0) << said.out << said.err;
  }
}

}  // namespace
}  // namespace systole
