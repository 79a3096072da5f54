#pragma once
// The network between machines, and the bandwidth that collectives were measured to reach on it.

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
  std::optional<std::int64_t> nics;               // for accelerators, per machine
  std::optional<BytesPerSecond> nic;              // per NIC, one direction
  std::optional<BytesPerSecond> per_accelerator;  // between machines, one direction
  std::optional<BytesPerSecond> measured;         // bus bandwidth of a collective, per machine
  std::string measured_how, inside, domain;       // inside: the network within a machine, in words
  std::string plugin, net, installer, images, vpcs, mtu, placement, host_network;  // required setup
  Dated dated;
  std::string note;
};

extern const TableColumns kFabricColumns;
Fabric read_fabric(TableRow& row);

// The network of this machine type; null: none is known. The network row "A2" covers the machine families "A2 Standard"
// and "A2 Ultra". A partial A3 has no such network.
const Fabric* fabric_of(std::span<const Fabric> fabrics, const MachineType& machine);

}  // namespace systole
