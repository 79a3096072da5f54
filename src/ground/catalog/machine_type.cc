#include "ground/catalog/machine_type.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "ground/base/nearest.h"

namespace systole {
namespace {

constexpr std::string_view kRequired[] = {"machine", "kind", "accelerators", "source", "date"};
constexpr std::string_view kOptional[] = {
    "family",         "accelerator",  "vcpus",     "memory_gib",   "cpu",           "arch",
    "local_ssd_gib",  "local_ssd",    "nics",      "network_gbps", "gpu_nics",      "note",
    "gpu_nic_gbps",   "host_nics",    "zones",     "gpudirect",    "host_nic_gbps", "gke_label",
    "gke_topologies", "provisioning", "confidence"};
constexpr std::string_view kKinds[] = {"cpu", "gpu", "tpu"};

std::optional<BytesPerSecond> gbit(std::optional<double> gbps) {
  if (!gbps) return std::nullopt;
  return BytesPerSecond(*gbps * 1e9 / 8);
}

// "n1-*+2xt4" becomes "n1-*".
std::string host_of(std::string_view name) {
  const std::size_t plus = name.find('+');
  return std::string(plus == name.npos ? std::string_view() : name.substr(0, plus));
}

bool takes(const MachineType& attachment, const MachineType& host) {
  return !attachment.host.empty() && matches(attachment.host, host.name) && host.accelerator.empty() &&
         (!attachment.vcpus || !host.vcpus || attachment.vcpus->holds(host.vcpus->most)) &&
         (!attachment.memory_gib || !host.memory_gib || attachment.memory_gib->holds(host.memory_gib->most));
}

std::string those_with(std::span<const MachineType> machines, std::string_view accelerator) {
  std::vector<std::string> names;
  for (const MachineType* type : machines_with(machines, accelerator)) names.push_back(type->name);
  if (names.empty()) return fmt::format("no machine that the catalog knows has {}", accelerator);
  return fmt::format("{} goes with {}", accelerator, fmt::join(names, ", "));
}

}  // namespace

const TableColumns kMachineColumns{"machines", kRequired, kOptional};

std::string_view name_of(MachineKind kind) { return kKinds[static_cast<int>(kind)]; }

std::optional<BytesPerSecond> network_of_accelerator(const MachineType& type) {
  if (type.accelerators <= 0) return std::nullopt;
  if (type.gpu_nics && type.gpu_nic) return *type.gpu_nic * (static_cast<double>(*type.gpu_nics) / type.accelerators);
  if (type.network) return *type.network * (1 / type.accelerators);
  return std::nullopt;
}

MachineType read_machine_type(TableRow& row) {
  MachineType type;
  type.name = row.name("machine");
  type.family = row.string("family");
  type.kind = static_cast<MachineKind>(row.one_of("kind", kKinds));
  type.accelerator = row.string("accelerator");
  type.accelerators = row.number("accelerators").value_or(0);
  if (type.accelerator.empty() != (type.accelerators == 0))
    row.wrong("accelerators",
              error(ErrorKind::invalid, "{}: {} accelerators of '{}'", type.name, type.accelerators, type.accelerator)
                  .hinted("accelerator names what there is one or more of"));
  type.host = host_of(type.name);
  type.vcpus = row.range("vcpus");
  type.memory_gib = row.range("memory_gib");
  type.local_ssd_gib = row.range("local_ssd_gib");
  type.local_ssd = row.string("local_ssd");
  type.cpu = row.string("cpu");
  type.arch = row.string("arch");
  type.network = gbit(row.number("network_gbps"));
  type.nics = row.count("nics");
  type.gpu_nics = row.count("gpu_nics");
  type.host_nics = row.count("host_nics");
  type.gpu_nic = gbit(row.number("gpu_nic_gbps"));
  type.host_nic = gbit(row.number("host_nic_gbps"));
  type.gpudirect = row.string("gpudirect");
  type.gke_label = row.string("gke_label");
  type.gke_topologies = row.string("gke_topologies");
  for (const std::string& terms : row.list("provisioning")) {
    const auto found = std::ranges::find(kProvisioningNames, terms);
    if (found == std::end(kProvisioningNames))
      row.wrong("provisioning", error(ErrorKind::invalid, "provisioning: '{}' is none of {}", terms,
                                      fmt::join(kProvisioningNames, ", ")));
    else
      type.provisioning.push_back(static_cast<Provisioning>(found - kProvisioningNames));
  }
  type.zones = row.list("zones");
  type.dated = row.dated("accelerator");
  type.note = row.string("note");
  return type;
}

bool MachineType::had_by(Provisioning terms) const {
  // A commitment for years is ordered on demand.
  if (terms == Provisioning::commitment_1y || terms == Provisioning::commitment_3y) terms = Provisioning::on_demand;
  return provisioning.empty() || std::ranges::find(provisioning, terms) != provisioning.end();
}

std::string MachineType::not_had_by(Provisioning terms) const {
  if (had_by(terms)) return "";
  const auto words = [](Provisioning one) {
    std::string text(name_of(one));
    std::ranges::replace(text, '_', '-');
    return text;
  };
  std::vector<std::string> others;
  std::ranges::transform(provisioning, std::back_inserter(others), words);
  return fmt::format("it is not had {}, only by {}",
                     terms == Provisioning::on_demand ? "on demand" : "by " + words(terms), fmt::join(others, " or "));
}

std::string MachineType::accelerators_text() const {
  if (accelerator.empty()) return "none";
  if (accelerators < 1) return fmt::format("1/{:.0f} x {}", 1 / accelerators, accelerator);
  return fmt::format("{:.0f} x {}", accelerators, accelerator);
}

const MachineType* type_named(std::span<const MachineType> machines, std::string_view name) {
  const auto found = std::ranges::find(machines, name, &MachineType::name);
  return found == machines.end() ? nullptr : &*found;
}

bool matches(std::string_view pattern, std::string_view name) {
  std::size_t p = 0, n = 0, star = pattern.npos, from = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      from = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p;
      ++n;
    } else if (star != pattern.npos) {
      p = star + 1;
      n = ++from;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == pattern.npos;
}

std::vector<const MachineType*> machines_with(std::span<const MachineType> machines, std::string_view accelerator) {
  std::vector<const MachineType*> found;
  for (const MachineType& type : machines)
    if (type.accelerator == accelerator) found.push_back(&type);
  return found;
}

bool attaches(std::span<const MachineType> machines, const MachineType& attachment, std::string_view pattern) {
  return std::ranges::any_of(
      machines, [&](const MachineType& host) { return matches(pattern, host.name) && takes(attachment, host); });
}

Result<const MachineType*> machine_for(std::span<const MachineType> machines, std::string_view machine,
                                       std::string_view accelerator, std::optional<double> accelerators) {
  const auto named = std::ranges::find(machines, machine, &MachineType::name);
  if (named == machines.end()) {
    std::vector<std::string> names;
    for (const MachineType& type : machines) names.push_back(type.name);
    return error(ErrorKind::not_found, "no machine type is called '{}'", machine).hinted(nearest_hint(machine, names));
  }
  std::vector<std::string> counts;
  for (const MachineType* type : machines_with(machines, accelerator)) {
    if (type != &*named && !takes(*type, *named)) continue;
    if (!accelerators || *accelerators == type->accelerators) return type;
    counts.push_back(fmt::format("{:g}", type->accelerators));
  }
  if (!counts.empty())
    return error(ErrorKind::invalid, "{} cannot have {:g} {}", machine, *accelerators, accelerator)
        .hinted(fmt::format("it has {}; {}", fmt::join(counts, " or "), those_with(machines, accelerator)));
  return error(ErrorKind::invalid, "{} cannot have {}: {}", machine, accelerator,
               named->accelerator.empty() ? "it takes none of them" : "it has " + named->accelerators_text())
      .hinted(those_with(machines, accelerator));
}

}  // namespace systole
