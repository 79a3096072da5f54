#include "ground/catalog/fabric.h"

#include <algorithm>

namespace systole {
namespace {

constexpr std::string_view kRequired[] = {"family", "machine", "accelerator", "source", "date"};
constexpr std::string_view kOptional[] = {
    "accelerators", "transport", "gpu_nics",   "gpu_nic_gbps", "gbps_per_accelerator",
    "host_network", "inside",    "domain",     "plugin",       "net",
    "installer",    "images",    "vpcs",       "mtu",          "placement",
    "busbw_GBps",   "busbw_how", "confidence", "note"};

std::optional<BytesPerSecond> rate(std::optional<double> count, double unit) {
  if (!count) return std::nullopt;
  return BytesPerSecond(*count * unit);
}

}  // namespace

const TableColumns kFabricColumns{"networks", kRequired, kOptional};

Fabric read_fabric(TableRow& row) {
  constexpr double kGbitRate = 1e9 / 8, kByteRate = 1e9;
  Fabric fabric;
  fabric.family = row.name("family");
  fabric.machine = row.name("machine");
  fabric.accelerators = row.list("accelerator");
  fabric.transport = row.string("transport");
  fabric.nics = row.count("gpu_nics");
  fabric.nic = rate(row.number("gpu_nic_gbps"), kGbitRate);
  fabric.per_accelerator = rate(row.number("gbps_per_accelerator"), kGbitRate);
  fabric.measured = rate(row.number("busbw_GBps"), kByteRate);
  fabric.measured_how = row.string("busbw_how");
  fabric.inside = row.string("inside");
  fabric.domain = row.string("domain");
  fabric.plugin = row.string("plugin");
  fabric.net = row.string("net");
  fabric.installer = row.string("installer");
  fabric.images = row.string("images");
  fabric.vpcs = row.string("vpcs");
  fabric.mtu = row.string("mtu");
  fabric.placement = row.string("placement");
  fabric.host_network = row.string("host_network");
  fabric.dated = row.dated();
  fabric.note = row.string("note");
  return fabric;
}

const Fabric* fabric_of(std::span<const Fabric> fabrics, const MachineType& machine) {
  const auto joins = [&](const Fabric& f) {
    const bool family = machine.family == f.family || machine.family.starts_with(f.family + " ");
    const bool direct = f.transport.find("RDMA") != f.transport.npos || f.transport.find("TCPX") != f.transport.npos;
    return family && std::ranges::find(f.accelerators, machine.accelerator) != f.accelerators.end() &&
           (!direct || !machine.gpudirect.empty());
  };
  const auto found = std::ranges::find_if(fabrics, joins);
  return found == fabrics.end() ? nullptr : &*found;
}

}  // namespace systole
