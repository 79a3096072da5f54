#include "ground/catalog/nccl_row.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "ground/catalog/tables.h"

namespace systole {
namespace {

CatalogTables& builtin() {
  static CatalogTables tables = CatalogTables::read().value();
  return tables;
}

std::optional<NcclProfile> profile_of(std::string_view machine) {
  std::optional<NcclProfile> profile;
  for (const NcclRow& row : *builtin().nccl()) {
    if (!row.is_of(machine, NcclScheduler::kubernetes)) continue;
    EXPECT_TRUE(!profile || *profile == row.profile) << machine << " is of two profiles";
    profile = row.profile;
  }
  return profile;
}

TEST(NcclRow, machines_with_gpus_have_a_profile_and_no_others) {
  for (const MachineType& machine : *builtin().machines()) {
    const std::optional<NcclProfile> profile = profile_of(machine.name);
    // No manifest is known for a4x-maxgpu, so it gets no variables.
    const bool told = machine.kind == MachineKind::gpu && machine.accelerator != "gb300";
    EXPECT_EQ(profile.has_value(), told) << machine.name;
    if (!profile) continue;
    // GPUDirect depends on the machine type, not the family: a3-highgpu-4g lacks it.
    const bool direct = !machine.gpudirect.empty();
    EXPECT_EQ(*profile != NcclProfile::socket, direct) << machine.name;
    EXPECT_EQ(*profile == NcclProfile::tcpx, machine.gpudirect == "TCPX") << machine.name;
  }
  EXPECT_EQ(profile_of("a3-highgpu-8g"), NcclProfile::tcpx);
  EXPECT_EQ(profile_of("a3-megagpu-8g"), NcclProfile::tcpxo);
  EXPECT_EQ(profile_of("a4-highgpu-8g"), NcclProfile::rdma);
  EXPECT_EQ(profile_of("a4x-highgpu-4g"), NcclProfile::rdma_mnnvl);
  EXPECT_EQ(profile_of("dgx-1"), std::nullopt);
}

TEST(NcclRow, a_machine_is_told_no_variable_twice) {
  for (const NcclScheduler scheduler : {NcclScheduler::kubernetes, NcclScheduler::slurm}) {
    for (const MachineType& machine : *builtin().machines()) {
      std::set<std::string> names;
      for (const NcclRow& row : *builtin().nccl()) {
        if (!row.is_of(machine.name, scheduler)) continue;
        EXPECT_TRUE(names.insert(row.variable).second) << machine.name << " " << row.variable;
      }
    }
  }
}

// Catches rows copied to the wrong family: InfiniBand disabled on a RoCE network.
TEST(NcclRow, says_of_each_family_what_its_network_needs) {
  const auto told = [](std::string_view machine, NcclScheduler scheduler) {
    std::map<std::string, std::string> values;
    for (const NcclRow& row : *builtin().nccl())
      if (row.is_of(machine, scheduler)) values[row.variable] = row.value;
    return values;
  };
  const auto pods = NcclScheduler::kubernetes;
  EXPECT_EQ(told("a2-highgpu-8g", pods).at("NCCL_IB_DISABLE"), "1");
  for (const char* machine : {"a3-highgpu-8g", "a3-megagpu-8g", "a3-ultragpu-8g", "a4-highgpu-8g", "a4x-highgpu-4g"})
    EXPECT_FALSE(told(machine, pods).contains("NCCL_IB_DISABLE")) << machine;
  EXPECT_EQ(told("a3-highgpu-8g", pods).at("NCCL_SOCKET_IFNAME"), "eth0");
  EXPECT_EQ(told("a3-highgpu-8g", NcclScheduler::slurm).at("NCCL_SOCKET_IFNAME"), "enp0s12");
  EXPECT_FALSE(told("a2-highgpu-8g", NcclScheduler::slurm).contains("NCCL_SOCKET_IFNAME")) << "not known there";
  EXPECT_EQ(told("a3-highgpu-8g", pods).size(), 20U);
  EXPECT_TRUE(told("ct5lp-hightpu-4t", pods).empty());
}

TEST(NcclRow, a_row_that_says_nothing_known_is_refused_at_its_place) {
  const CsvTable table =
      CsvTable::read("profile,scheduler,machines,variable,value,reason,source,date\ntcpy,pods,a2-*,,1,r,s,2026-08\n",
                     "f")
          .value();
  std::vector<Error> errors;
  TableRow row(table, 0, false, errors);
  read_nccl_row(row);
  ASSERT_EQ(errors.size(), 3U);
  EXPECT_EQ(to_string(errors[0].where), "f:2:1");
  EXPECT_EQ(to_string(errors[1].where), "f:2:6");
}

}  // namespace
}  // namespace systole
