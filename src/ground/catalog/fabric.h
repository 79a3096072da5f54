#pragma once
// What joins machines to each other: the network between them and what collectives were measured to get out of it.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ground/base/units.h"
#include "ground/catalog/machine_type.h"
#include "ground/catalog/table_row.h"

namespace systole {

struct Fabric {
  std::string family, machine;                    // "A3 High"; the machine types, in words
  std::vector<std::string> accelerators;          // catalog entries
  std::string transport;                          // "GPUDirect-TCPX"
  std::optional<std::int64_t> nics;               // for accelerators, of one machine
  std::optional<BytesPerSecond> nic;              // one of them, one way
  std::optional<BytesPerSecond> per_accelerator;  // between machines, one way
  std::optional<BytesPerSecond> measured;         // bus bandwidth of a collective, of one machine
  std::string measured_how, inside, domain;       // inside a machine: in words
  std::string plugin, net, installer, images, vpcs, mtu, placement, host_network;  // what has to be set up
  Dated dated;
  std::string note;
};

extern const TableColumns kFabricColumns;
Fabric read_fabric(TableRow& row);

// The network that machines of this type join; null: none is known. "A2" of the networks are "A2 Standard" and "A2
// Ultra" of the machines; a part of an A3 has none of its network.
const Fabric* fabric_of(std::span<const Fabric> fabrics, const MachineType& machine);

}  // namespace systole
