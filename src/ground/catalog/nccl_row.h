#pragma once
// What NCCL is told on a family of machines: one variable a row. Names of interfaces differ between pods and virtual
// machines, so that a row may be of one scheduler alone. A machine that no row names is told nothing.

#include <string>
#include <string_view>
#include <vector>

#include "ground/catalog/table_row.h"

namespace systole {

// How machines reach each other: TCP sockets; Google's plugins for A3 High, A3 Mega, and for RoCE without and with
// NVLink between machines.
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
