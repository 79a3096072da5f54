#pragma once
// Machine types: what a machine is made of, and which accelerators are in it or may be attached to it.
//
// Most accelerators come with their machine (a2, a3, a4, g2, g4 and every TPU). Some are attached to machines of
// another family: the row "n1-*+2xt4" says that two T4 go on an n1 of 1 to 48 vCPUs, and `host` of it is "n1-*".

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
  std::string accelerator;  // its entry in the catalog; empty: none
  double accelerators = 0;  // in the machine; 0.125 is an eighth of one, shared with other machines
  std::string host;         // of accelerators that are attached: which machines take them, "n1-*"; else empty
  std::optional<NumberRange> vcpus, memory_gib, local_ssd_gib;  // GiB
  std::string local_ssd;                                        // none, optional, included
  std::string cpu, arch;                                        // "Intel Sapphire Rapids", "x86_64"
  std::optional<BytesPerSecond> network;                        // in all, one way
  std::optional<std::int64_t> nics, gpu_nics, host_nics;
  std::optional<BytesPerSecond> gpu_nic, host_nic;  // of one card
  std::string gpudirect, gke_label, gke_topologies;
  std::vector<Provisioning> provisioning;  // how it may be had; empty: not known
  std::vector<std::string> zones;          // where it stands, of the user's machines
  Dated dated;
  std::string note;

  // Whether it may be had so; true where that is not known.
  bool had_by(Provisioning terms) const;
  // "8 x h100", "1/8 x rtx-pro-6000", "none".
  std::string accelerators_text() const;
};

// What each of its accelerators has of the network between machines, one way; nothing where it is not known.
std::optional<BytesPerSecond> network_of_accelerator(const MachineType& type);

extern const TableColumns kMachineColumns;
MachineType read_machine_type(TableRow& row);

// "a3-*" holds "a3-highgpu-8g": '*' stands for any letters.
bool matches(std::string_view pattern, std::string_view name);

// The machine types that hold this accelerator, or that it is attached to, in their order.
std::vector<const MachineType*> machines_with(std::span<const MachineType> machines, std::string_view accelerator);

// Whether it is an attachment ("n1-*+2xt4") for a machine that `pattern` names.
bool attaches(std::span<const MachineType> machines, const MachineType& attachment, std::string_view pattern);

// The row that says how `accelerators` of a kind go with a machine, which for those that are attached is the row of the
// attachment. Errors: not_found: no such machine, with the nearest names; invalid: it does not take that accelerator,
// or not so many, with the machines that do.
Result<const MachineType*> machine_for(std::span<const MachineType> machines, std::string_view machine,
                                       std::string_view accelerator, std::optional<double> accelerators = {});

}  // namespace systole
