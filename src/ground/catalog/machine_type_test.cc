#include "ground/catalog/machine_type.h"

#include <gtest/gtest.h>

#include "ground/catalog/tables.h"

namespace systole {
namespace {

std::span<const MachineType> machines() {
  static CatalogTables tables = CatalogTables::read().value();
  return tables.machines().value();
}
const MachineType& machine(const char* name, const char* accelerator) {
  return *machine_for(machines(), name, accelerator).value();
}

void expect_refused(const char* name, const char* accelerator, std::optional<double> count, const char* says,
                    const char* hint) {
  const auto refused = machine_for(machines(), name, accelerator, count);
  ASSERT_FALSE(refused.ok()) << name;
  EXPECT_NE(refused.error().message.find(says), std::string::npos) << refused.error().message;
  EXPECT_NE(refused.error().hint.find(hint), std::string::npos) << refused.error().hint;
}

TEST(MachineType, figures_of_the_vendors_pages) {
  const MachineType& a3 = machine("a3-highgpu-8g", "h100");
  EXPECT_EQ(a3.accelerators, 8);
  EXPECT_EQ(a3.vcpus->most, 208);
  EXPECT_EQ(a3.memory_gib->most, 1872);
  EXPECT_EQ(a3.local_ssd_gib->most, 6000);
  EXPECT_EQ(a3.network, BytesPerSecond(1000e9 / 8)) << "4 cards of 200 Gbit/s for GPUs and one for the host";
  EXPECT_EQ(a3.gpu_nics, 4);
  EXPECT_EQ(a3.gpudirect, "TCPX");
  EXPECT_EQ(machine("a2-highgpu-8g", "a100-40gb").memory_gib->most, 680);
  EXPECT_EQ(machine("a2-megagpu-16g", "a100-40gb").accelerators, 16);
  EXPECT_EQ(machine("g4-standard-6", "rtx-pro-6000").accelerators_text(), "1/8 x rtx-pro-6000");
  EXPECT_EQ(machine("a4x-highgpu-4g", "gb200").arch, "arm64");
  EXPECT_EQ(machine("ct5p-hightpu-4t", "v5p").kind, MachineKind::tpu);
  EXPECT_FALSE(machine("ct6e-standard-1t", "v6e").nics) << "a quarter of a card is no number of cards";
}

// L4 is only in g2; a2, a3 and g2 have built-in GPUs; T4, P4, P100 and V100 are attached to n1.
TEST(MachineType, accelerators_and_their_machines) {
  for (const MachineType* type : machines_with(machines(), "l4")) EXPECT_TRUE(type->name.starts_with("g2-"));
  EXPECT_EQ(machines_with(machines(), "l4").size(), 8U);
  EXPECT_EQ(machine("n1-standard-4", "t4").name, "n1-*+1xt4");
  EXPECT_EQ(machine_for(machines(), "n1-standard-8", "v100", 8).value()->accelerators, 8);
  expect_refused("n1-standard-4", "l4", {}, "n1-standard-4 cannot have l4: it takes none of them",
                 "l4 goes with g2-standard-4, g2-standard-8");
  expect_refused("a2-highgpu-1g", "h100", {}, "it has 1 x a100-40gb", "h100 goes with a3-highgpu-1g");
  expect_refused("a3-highgpu-8g", "t4", {}, "it has 8 x h100", "t4 goes with n1-*+1xt4");
  expect_refused("a3-highgpu-8g", "h100", 4, "a3-highgpu-8g cannot have 4 h100",
                 "it has 8; h100 goes with a3-highgpu-1g");
  expect_refused("n1-standard-96", "t4", 1, "n1-standard-96 cannot have 1 t4", "it has 4");
  expect_refused("a3-highpu-8g", "h100", {}, "no machine type is called 'a3-highpu-8g'", "'a3-highgpu-8g'");
  expect_refused("n1-standard-4", "tpu8t", {}, "cannot have tpu8t", "no machine that the catalog knows has tpu8t");
}

TEST(MachineType, how_it_may_be_had) {
  EXPECT_FALSE(machine("a3-highgpu-1g", "h100").had_by(Provisioning::on_demand));
  EXPECT_FALSE(machine("a3-highgpu-1g", "h100").had_by(Provisioning::commitment_1y));
  EXPECT_TRUE(machine("a3-highgpu-1g", "h100").had_by(Provisioning::spot));
  EXPECT_FALSE(machine("a4-highgpu-8g", "b200").had_by(Provisioning::on_demand));
  EXPECT_TRUE(machine("ct6e-standard-4t", "v6e").had_by(Provisioning::on_demand)) << "not known";
}

TEST(MachineType, patterns) {
  EXPECT_TRUE(matches("a3-*", "a3-highgpu-8g"));
  EXPECT_TRUE(matches("*-8g", "a3-highgpu-8g"));
  EXPECT_TRUE(matches("a*gpu*g", "a3-highgpu-8g"));
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("a3", "a3"));
  EXPECT_FALSE(matches("a3", "a3-highgpu-8g"));
  EXPECT_FALSE(matches("g2-*", "a3-highgpu-8g"));
  EXPECT_FALSE(matches("a*b", "aab-"));
}

TEST(MachineType, a_users_machine_is_checked) {
  const auto read = [](const std::string& map) {
    return CatalogTables::read(
        std::vector<CatalogFile>{{"own.yaml", "systole_catalog: 1\nmachines:\n  - " + map + "\n"}});
  };
  const std::string good =
      "{ machine: dgx, kind: gpu, accelerator: h100, accelerators: 8, vcpus: 112, zones: [lab], source: me, date: "
      "2026-11-01 }";
  CatalogTables own = read(good).value();
  EXPECT_EQ(own.machines().value().back().name, "dgx");
  EXPECT_EQ(own.machines().value().back().zones, std::vector<std::string>{"lab"});
  const std::pair<const char*, const char*> kWrong[] = {
      {"{ machine: dgx, kind: gpu, accelerator: h100, source: me, date: 2026-11-01 }",
       "own.yaml:3:5: error: 'accelerators' is missing"},
      {"{ machine: dgx, kind: gpu, accelerators: 8, source: me, date: 2026-11-01 }", "8 accelerators of ''"},
      {"{ machine: dgx, kind: gpus, accelerator: h100, accelerators: 8, source: me, date: 2026-11-01 }",
       "own.yaml:3:27: error: kind: 'gpus' is none of cpu, gpu, tpu"},
      {"{ machine: dgx, kind: cpu, accelerators: 0, vcpu: 8, source: me, date: 2026-11-01 }",
       "machines have no 'vcpu'"},
      {"{ machine: dgx, kind: cpu, accelerators: 0, vcpus: 8-4, source: me, date: 2026-11-01 }",
       "'8-4' is neither a number nor a range"},
      {"{ machine: dgx, kind: cpu, accelerators: 0, provisioning: [on_demand, spott], source: me, date: 2026-11-01 }",
       "'spott' is none of"},
      {"{ machine: dgx, kind: cpu, accelerators: 0, source: me, date: lately }", "'lately' is no date"},
      {"dgx", "expected a map"},
  };
  for (const auto& [map, says] : kWrong) {
    const auto refused = read(map);
    ASSERT_FALSE(refused.ok()) << map;
    EXPECT_NE(to_string(refused.error()).find(says), std::string::npos) << to_string(refused.error());
  }
}

}  // namespace
}  // namespace systole
