#pragma once
// Machine types: their resources, and the accelerators that are built in or can be attached.
//
// Most accelerators are built into their machine (a2, a3, a4, g2, g4 and every TPU). Some are attached to machines of
// another family: the row "n1-*+2xt4" says that two T4 attach to an n1 of 1 to 48 vCPUs; its `host` is "n1-*".

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/units.h"
#include "ground/catalog/provisioning.h"
#include "ground/catalog/table_row.h"

namespace systole {

enum class MachineKind { cpu, gpu, tpu };
std::string_view name_of(MachineKind kind);

struct MachineType {
  std::string name, family;
  MachineKind kind = MachineKind::cpu;
  std::string accelerator;  // name of its catalog entry; empty: none
  double accelerators = 0;  // per machine; 0.125 is an eighth of one, shared with other machines
  std::string host;         // for attached accelerators: the machines that take them, "n1-*"; else empty
  std::optional<NumberRange> vcpus, memory_gib, local_ssd_gib;  // GiB
  std::string local_ssd;                                        // none, optional, included
  std::string cpu, arch;                                        // "Intel Sapphire Rapids", "x86_64"
  std::optional<BytesPerSecond> network;                        // total, one direction
  std::optional<std::int64_t> nics, gpu_nics, host_nics;
  std::optional<BytesPerSecond> gpu_nic, host_nic;  // of one NIC
  std::string gpudirect, gke_label, gke_topologies;
  std::vector<Provisioning> provisioning;  // available terms; empty: unknown
  std::vector<std::string> zones;          // zones of the user's own machines
  Dated dated;
  std::string note;

  // Whether it is available on these terms; true if unknown.
  bool had_by(Provisioning terms) const;
  // "it is not had on demand, only by spot or flex-start"; empty: it is.
  std::string not_had_by(Provisioning terms) const;
  // "8 x h100", "1/8 x rtx-pro-6000", "none".
  std::string accelerators_text() const;
};

// Network bandwidth between machines per accelerator, one direction; nothing if unknown.
std::optional<BytesPerSecond> network_of_accelerator(const MachineType& type);

extern const TableColumns kMachineColumns;
MachineType read_machine_type(TableRow& row);

// Null if there is none of that name. Borrowed from `machines`.
const MachineType* type_named(std::span<const MachineType> machines, std::string_view name);

// Glob match: "a3-*" matches "a3-highgpu-8g"; '*' matches any characters.
bool matches(std::string_view pattern, std::string_view name);

// The machine types with this accelerator, built in or attached, in order.
std::vector<const MachineType*> machines_with(std::span<const MachineType> machines, std::string_view accelerator);

// Whether `attachment` ("n1-*+2xt4") attaches to some machine that `pattern` matches.
bool attaches(std::span<const MachineType> machines, const MachineType& attachment, std::string_view pattern);

// The row for a machine with `accelerators` of a kind; for attached accelerators the row of the attachment. Errors:
// not_found: no such machine, with the nearest names; invalid: it does not take that accelerator or that number, with
// the machines that do.
Result<const MachineType*> machine_for(std::span<const MachineType> machines, std::string_view machine,
                                       std::string_view accelerator, std::optional<double> accelerators = {});

}  // namespace systole
