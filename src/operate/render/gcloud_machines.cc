#include "operate/render/gcloud_machines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "ground/base/letter_case.h"

namespace systole {

GcloudAccelerators gcloud_accelerators(std::span<const MachineType> machines, std::string_view machine,
                                       std::string_view accelerator, std::int64_t nodes) {
  std::string type(accelerator);
  std::int64_t count = 1;
  if (const std::size_t at = accelerator.find("type="); at != accelerator.npos) {
    type = accelerator.substr(at + 5, accelerator.find(',', at) - at - 5);
    if (const std::size_t of = accelerator.find("count="); of != accelerator.npos)
      count = std::clamp<std::int64_t>(std::atoll(std::string(accelerator.substr(of + 6)).c_str()), 1, 1'000'000);
  } else if (!type.empty()) {
    return {type};
  }
  type = lower_case(type);
  std::ranges::replace(type, '_', '-');
  const MachineType* own = type_named(machines, machine);
  if (own != nullptr && own->accelerators >= 1 && own->host.empty()) return {own->name, nodes};
  for (const MachineType& each : machines)
    if (!type.empty() && each.gke_label == type &&
        (each.host.empty() || machine.empty() || matches(each.host, machine)))
      return {each.accelerator, count * nodes};
  return {};
}

std::string_view gcloud_group(GcloudSpec::Create create) {
  using Create = GcloudSpec::Create;
  switch (create) {
    case Create::nothing: break;
    case Create::instances: return "compute instances";
    case Create::tpu_vm: return "compute tpus tpu-vm";
    case Create::node_pool: return "container node-pools";
    case Create::cluster: return "container clusters";
  }
  return "";
}

std::string accelerators_of(std::span<const MachineType> machines, std::string_view machine,
                            std::string_view accelerator, std::int64_t nodes) {
  const GcloudAccelerators made = gcloud_accelerators(machines, machine, accelerator, nodes);
  return made.count > 0 ? fmt::format("{}:{}", made.name, made.count) : made.name;
}

}  // namespace systole
