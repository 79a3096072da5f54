#include "ground/catalog/nccl_row.h"

#include <algorithm>

#include "ground/catalog/machine_type.h"

namespace systole {
namespace {

constexpr std::string_view kRequired[] = {"profile", "scheduler", "machines", "variable",
                                          "value",   "reason",    "source",   "date"};
constexpr std::string_view kOptional[] = {"confidence", "note"};

constexpr std::string_view kProfiles[] = {"socket", "tcpx", "tcpxo", "rdma", "rdma-mnnvl"};
constexpr std::string_view kSchedulers[] = {"any", "kubernetes", "slurm"};

}  // namespace

std::string_view name_of(NcclProfile profile) { return kProfiles[static_cast<std::size_t>(profile)]; }

const TableColumns kNcclColumns{"nccl", kRequired, kOptional};

NcclRow read_nccl_row(TableRow& row) {
  NcclRow nccl;
  nccl.profile = static_cast<NcclProfile>(row.one_of("profile", kProfiles));
  nccl.scheduler = static_cast<NcclScheduler>(row.one_of("scheduler", kSchedulers));
  nccl.machines = row.list("machines");
  nccl.variable = row.name("variable");
  nccl.value = row.name("value");
  nccl.reason = row.name("reason");
  nccl.dated = row.dated();
  nccl.note = row.string("note");
  return nccl;
}

bool NcclRow::is_of(std::string_view machine, NcclScheduler where) const {
  return (scheduler == NcclScheduler::any || scheduler == where) &&
         std::ranges::any_of(machines, [&](const std::string& pattern) { return matches(pattern, machine); });
}

}  // namespace systole
