// `systole catalog machines [NAME]`: machine types and their hardware; for one, all facts, including its network.

#include <fmt/ranges.h>

#include <array>

#include "ground/base/nearest.h"
#include "ground/process/machine.h"
#include "operate/catalog_view/catalog_view.h"

namespace systole {
namespace {

// A letter per provisioning term, in their order: "DSFR".
constexpr std::string_view kLetters = "DSFC13RO";
const char* const kLegend =
    "had: D on demand, S spot, F flex-start, C calendar, R reservation, O one's own; -: not known\n";

std::string had_text(const MachineType& type) {
  std::string text;
  for (const Provisioning terms : type.provisioning) text += kLetters[static_cast<std::size_t>(terms)];
  return text.empty() ? "-" : text;
}

// This machine as a row of the list.
MachineType at_hand(const std::string& today) {
  MachineType type;
  type.name = "this-machine";
  type.family = "own";
  type.cpu = processor_name();
  const double cores = allowed_cores();
  type.vcpus = NumberRange{cores, cores};
  type.provisioning = {Provisioning::own};
  type.dated = {"the machine at hand", today, "high", {}, true};
  type.note = "$0: an offer as any other";
  return type;
}

Node node_of(const MachineType& type, const std::string& today) {
  const auto most = [](const std::optional<NumberRange>& range) {
    return range ? Node::map({{"least", range->least}, {"most", range->most}}) : Node();
  };
  const auto rate = [](const std::optional<BytesPerSecond>& r) { return r ? Node(r->count()) : Node(); };
  Node had = Node::sequence();
  for (const Provisioning terms : type.provisioning) had.push(name_of(terms));
  Node node = Node::map({{"machine", type.name},
                         {"family", type.family},
                         {"kind", name_of(type.kind)},
                         {"accelerator", type.accelerator},
                         {"accelerators", type.accelerators},
                         {"vcpus", most(type.vcpus)},
                         {"memory_gib", most(type.memory_gib)},
                         {"local_ssd_gib", most(type.local_ssd_gib)},
                         {"local_ssd", type.local_ssd},
                         {"cpu", type.cpu},
                         {"arch", type.arch},
                         {"network_bytes_per_second", rate(type.network)},
                         {"gpudirect", type.gpudirect},
                         {"gke_label", type.gke_label},
                         {"provisioning", std::move(had)},
                         {"note", type.note}});
  set_dated(node, type.dated.source, type.dated.date, today, kFactIsOldAfter);
  return node;
}

// Whether the row names this machine: "a2-highgpu-8g / a2-ultragpu-8g".
bool is_of(const Fabric& fabric, const MachineType& type) {
  const std::string all = " " + fabric.machine + " ";
  return all.find(" " + type.name + " ") != all.npos;
}

// Lines such as "gpu nics   4 of 200 Gbit/s", for known facts.
std::string text_of(const MachineType& type, const Fabric* fabric, const std::string& today, int width) {
  SourceNotes notes(today);
  std::vector<std::array<std::string, 2>> rows;
  const auto add = [&](const char* what, const std::string& text) {
    if (!text.empty() && text != "-") rows.push_back({what, text});
  };
  const auto cards = [](const std::optional<std::int64_t>& count, const std::optional<BytesPerSecond>& rate) {
    if (!count) return std::string();
    return rate ? fmt::format("{} of {} Gbit/s", *count, gbit_text(rate)) : std::to_string(*count);
  };
  add("accelerators", type.accelerators_text());
  if (!type.host.empty()) add("attached to", type.host);
  add("vCPUs", range_text(type.vcpus));
  if (type.memory_gib) add("memory", range_text(type.memory_gib) + " GiB");
  if (type.local_ssd_gib) add("local SSD", range_text(type.local_ssd_gib) + " GiB, " + type.local_ssd);
  add("processor", type.cpu + (type.arch.empty() ? "" : ", " + type.arch));
  if (type.network) add("network", gbit_text(type.network) + " Gbit/s");
  add("cards for GPUs", cards(type.gpu_nics, type.gpu_nic));
  add("cards of the host", cards(type.host_nics, type.host_nic));
  add("GPUDirect", type.gpudirect);
  add("label in GKE", type.gke_label);
  add("topologies", type.gke_topologies);
  std::vector<std::string_view> had;
  for (const Provisioning terms : type.provisioning) had.push_back(name_of(terms));
  add("had by", fmt::format("{}", fmt::join(had, ", ")));
  add("note", type.note);
  add("from", notes.fact(type.dated));
  if (fabric != nullptr) {
    // A family's row is about one of its machines; others' rate per accelerator follows from their own NICs.
    const std::optional<BytesPerSecond> each =
        is_of(*fabric, type) && fabric->per_accelerator ? fabric->per_accelerator : network_of_accelerator(type);
    add("between machines",
        fabric->transport + (each ? fmt::format(", {} Gbit/s an accelerator", gbit_text(each)) : std::string()));
    if (fabric->measured && is_of(*fabric, type))
      add("measured", fmt::format("{} ({})", to_string(*fabric->measured), fabric->measured_how));
    add("placement", fabric->placement);
    add("from", notes.fact(fabric->dated));
  }
  std::string text = type.name + "\n\n";
  for (const auto& row : rows)
    text += wrapped(fmt::format("{:<17}  {}", row[0], row[1]), note_columns(width), std::string(19, ' '));
  return text + notes.text(width);
}

std::string list_text(const std::vector<const MachineType*>& types, const std::string& today, int width) {
  SourceNotes notes(today);
  std::vector<std::vector<std::string>> rows;
  for (const MachineType* type : types)
    rows.push_back({type->name, type->accelerators_text(), range_text(type->vcpus), range_text(type->memory_gib),
                    range_text(type->local_ssd_gib), gbit_text(type->network), had_text(*type),
                    notes.fact(type->dated)});
  return table({"machine", "accelerators", "vCPUs>", "GiB>", "SSD GiB>", "Gbit/s>", "had", "date and source"}, rows,
               width) +
         "\n" + kLegend + notes.text(width);
}

}  // namespace

Result<Shown> show_machines(CatalogView& view, const std::string& name, const CatalogFilters& filters, int width) {
  const std::string accelerator = TRY(asked_accelerator(view, filters.accelerator));
  std::vector<MachineType> own{at_hand(view.today)};
  std::vector<const MachineType*> found;
  std::vector<std::string> names;
  const std::string& pattern = name.empty() ? filters.machine : name;
  const std::span<const MachineType> known = TRY(view.tables.machines());
  for (const std::span<const MachineType> types : {known, std::span<const MachineType>(own)})
    for (const MachineType& type : types) {
      names.push_back(type.name);
      const bool named =
          pattern.empty() || matches(pattern, type.name) || (!accelerator.empty() && attaches(known, type, pattern));
      if (named && (accelerator.empty() || type.accelerator == accelerator)) found.push_back(&type);
    }
  if (found.empty() && !pattern.empty()) {
    if (!accelerator.empty()) TRY(machine_for(known, pattern, accelerator));
    return error(ErrorKind::not_found, "no machine type is called '{}'", pattern).hinted(nearest_hint(pattern, names));
  }
  const Fabric* fabric = fabric_of(TRY(view.tables.fabrics()), *found.front());
  std::string text = name.empty() || found.size() != 1 ? list_text(found, view.today, width)
                                                       : text_of(*found.front(), fabric, view.today, width);
  Node list = Node::sequence();
  for (const MachineType* type : found) list.push(node_of(*type, view.today));
  return Shown{std::move(text), Node::map({{"today", view.today}, {"machines", std::move(list)}})};
}

}  // namespace systole
