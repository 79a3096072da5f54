#pragma once
// NCCL environment variables per machine family, one per row. Interface names differ between pods and virtual machines,
// so a row may apply to one scheduler only. Machines without a row get no variables.

#include <string>
#include <string_view>
#include <vector>

#include "ground/catalog/table_row.h"

namespace systole {

// The transport between machines: TCP sockets; Google's plugins for A3 High and A3 Mega; RoCE without and with NVLink
// between machines.
enum class NcclProfile { socket, tcpx, tcpxo, rdma, rdma_mnnvl };
std::string_view name_of(NcclProfile profile);

enum class NcclScheduler { any, kubernetes, slurm };

struct NcclRow {
  NcclProfile profile = NcclProfile::socket;
  NcclScheduler scheduler = NcclScheduler::any;
  std::vector<std::string> machines;  // patterns: "a2-*"
  std::string variable, value, reason;
  Dated dated;
  std::string note;

  bool is_of(std::string_view machine, NcclScheduler where) const;
};

extern const TableColumns kNcclColumns;
NcclRow read_nccl_row(TableRow& row);

}  // namespace systole
