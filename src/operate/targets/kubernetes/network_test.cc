// Networks between GPUs of several pods, by machine family, checked against the official schemas.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "operate/render/testing/hostile.h"
#include "operate/targets/kubernetes/testing/kubernetes_around.h"
#include "operate/targets/kubernetes/testing/kubernetes_rendered.h"

namespace systole {
namespace {

struct Family {
  const char* accelerators;
  int networks;         // besides eth0
  const char* sidecar;  // "": none
  const char* script;   // that start.sh runs before
};
constexpr Family kFamilies[] = {{"t4:16@n1-*+4xt4", 0, "", ""},
                                {"g2-standard-96:2", 0, "", ""},
                                {"a2-highgpu-8g:2", 0, "", ""},
                                {"a3-highgpu-4g:2", 0, "", ""},
                                {"a3-highgpu-8g:2", 4, "tcpx-daemon", ""},
                                {"a3-megagpu-8g:2", 8, "tcpxo-daemon", "nccl-env-profile.sh"},
                                {"a3-ultragpu-8g:2", 8, "", "set_nccl_env.sh"},
                                {"a4-highgpu-8g:2", 8, "", "set_nccl_env.sh"},
                                {"a4x-highgpu-4g:2", 4, "", "set_nccl_env.sh"}};

TEST(RenderNetwork, each_family_has_its_own_and_all_of_it_is_official) {
  for (const Family& family : kFamilies) {
    SCOPED_TRACE(family.accelerators);
    const std::vector<Node> objects = objects_of(workload("ddp.yaml", program_on(family.accelerators)));
    expect_official(objects);
    const Node& job = of_kind(objects, "Job");
    const Node* annotations = at(job, "spec.template.metadata").find("annotations");
    const Node* interfaces = annotations->find("networking.gke.io/interfaces");
    ASSERT_EQ(interfaces != nullptr, family.networks > 0);
    if (interfaces != nullptr) {
      const Node list = parse_yaml(interfaces->text(), "interfaces").value();  // JSON is YAML
      EXPECT_EQ(list.items().size(), static_cast<std::size_t>(family.networks) + 1);
      EXPECT_EQ(list.items()[0].find("network")->text(), "default");
    }
    const Node* beside = at(job, "spec.template.spec").find("initContainers");
    ASSERT_EQ(beside != nullptr, *family.sidecar != '\0');
    if (beside != nullptr) {
      const Node& daemon = beside->items()[0];
      EXPECT_EQ(daemon.find("name")->text(), family.sidecar);
      EXPECT_EQ(daemon.find("restartPolicy")->text(), "Always") << "or the job never ends";
      EXPECT_NE(annotations->find(fmt::format("devices.gke.io/container.{}", family.sidecar)), nullptr);
      EXPECT_FALSE(has(daemon.find("image")->text(), ";")) << daemon.find("image")->text();
    }
    const std::string start = at(of_kind(objects, "ConfigMap"), "data").find("start.sh")->text();
    EXPECT_EQ(has(start, "SYSTOLE_NETWORK"), *family.script != '\0');
    EXPECT_TRUE(has(start, family.script)) << start;
    const std::map<std::string, std::string> env = env_of(job);
    EXPECT_EQ(env.at("NCCL_DEBUG"), "WARN");
    EXPECT_EQ(env.at("NCCL_SOCKET_IFNAME"), "eth0");
    EXPECT_EQ(env.contains("NCCL_IB_DISABLE"), family.networks == 0);
    EXPECT_FALSE(env.contains("LD_LIBRARY_PATH")) << "the image's own would be lost";
    // Every mount has its volume, also in the daemon.
    std::set<std::string> volumes;
    for (const Node& volume : at(job, "spec.template.spec.volumes").items())
      EXPECT_TRUE(volumes.insert(volume.find("name")->text()).second) << volume.find("name")->text();
    for (const Node& mount : at(container_of(job), "volumeMounts").items())
      EXPECT_TRUE(volumes.contains(mount.find("name")->text()));
    if (beside != nullptr) {
      for (const Node& mount : beside->items()[0].find("volumeMounts")->items())
        EXPECT_TRUE(volumes.contains(mount.find("name")->text())) << mount.find("name")->text();
    }
  }
}

TEST(RenderNetwork, a4x_pods_hold_a_channel_of_one_compute_domain) {
  const std::vector<Node> objects = objects_of(workload("ddp.yaml", program_on("a4x-highgpu-4g:2")));
  const Node& domain = of_kind(objects, "ComputeDomain");
  EXPECT_EQ(at(domain, "spec.numNodes").text(), "2");
  const Node& pod = at(of_kind(objects, "Job"), "spec.template.spec");
  EXPECT_EQ(at(pod, "resourceClaims.0.resourceClaimTemplateName").text(),
            at(domain, "spec.channel.resourceClaimTemplate.name").text());
  EXPECT_EQ(at(pod, "containers.0.resources.claims.0.name").text(), at(pod, "resourceClaims.0.name").text());
}

// Machines that are not in the table, single machines and TPUs get no settings.
TEST(RenderNetwork, machines_alone_tpus_and_unknown_ones_are_told_nothing) {
  for (const std::vector<std::string>& sets :
       {program_on("a3-highgpu-8g:1"), program_on("v5e:4x4"), program_on("v5p:2x2x2"), program_on("v6e:4x4"),
        program_on("", {"resources.nodes=2", "resources.gpus_per_node=8"}), program_on("", {"resources.nodes=2"})}) {
    const std::string text = text_of(sets);
    for (const char* word : {"NCCL", "networking.gke.io", "hostPath", "initContainers"})
      EXPECT_FALSE(has(text, word)) << sets.back() << ": " << word;
  }
}

TEST(RenderNetwork, what_env_says_wins_and_both_are_named) {
  const std::vector<std::string> sets =
      program_on("a3-highgpu-8g:2", {"env={NCCL_SOCKET_IFNAME: bond0, NCCL_DEBUG: WARN}"});
  const Rendered made = rendered(workload("ddp.yaml", sets)).value();
  EXPECT_FALSE(has(made.files[0].text, "name: NCCL_SOCKET_IFNAME\n")) << "of a rank it is what env says";
  int told = 0;
  for (const std::string& warning : made.warnings)
    if (has(warning, "NCCL_SOCKET_IFNAME is bond0; a3-highgpu-8g would have eth0")) ++told;
  EXPECT_EQ(told, 1);
  for (const std::string& warning : made.warnings) EXPECT_FALSE(has(warning, "NCCL_DEBUG")) << "they agree";
}

TEST(RenderNetwork, values_say_where_they_come_from) {
  EXPECT_TRUE(has(text_of(program_on("a3-highgpu-8g:2")),
                  "value: \"0\" # nccl.csv, 2026-08: GoogleCloudPlatform/cluster-toolkit:"));
}

}  // namespace
}  // namespace systole
