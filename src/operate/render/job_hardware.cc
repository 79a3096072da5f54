// The hardware of a job: the accelerators named in the workload, otherwise those of its plan. If both are given, or the
// workload gives a count beside them, they must agree.
#include <algorithm>

#include "ground/catalog/hardware.h"
#include "operate/render/cluster_job.h"

namespace systole {
namespace {

const std::string kThisMachine = "this machine";

Result<RequestedHardware> asked_by(const RenderRequest& ask, const std::string& words, const char* key) {
  const RenderFacts& facts = ask.facts;
  CHECK(facts.catalog != nullptr, "accelerators are asked for, and there is no catalog");
  return parse_hardware(*facts.catalog, facts.machines, facts.slices, words, key);
}

std::string shape_of(const RequestedHardware& asked) { return asked.slice ? asked.slice->by_shape() : ""; }

bool agree(const RequestedHardware& asked, const RequestedHardware& planned) {
  const auto allowed = [&](const MachineType* type) {
    return asked.types.empty() || std::ranges::find(asked.types, type) != asked.types.end();
  };
  return asked.chip == planned.chip && asked.chips == planned.chips && asked.slices == planned.slices &&
         shape_of(asked) == shape_of(planned) && std::ranges::all_of(planned.types, allowed);
}

// The hardware from workload and plan together; nothing if neither names any.
Result<std::optional<RequestedHardware>> resolved(const RenderRequest& ask) {
  const ResourcesSpec& resources = ask.workload.resources;
  std::string planned_on;
  if (ask.plan != nullptr) planned_on = ask.plan->cost ? ask.plan->cost->on : kThisMachine;
  const bool elsewhere = !planned_on.empty() && planned_on != kThisMachine && planned_on != "this";
  if (resources.accelerators.empty())
    return elsewhere ? std::optional(TRY(asked_by(ask, planned_on, "the plan:"))) : std::nullopt;
  RequestedHardware asked = TRY(asked_by(ask, resources.accelerators, "resources.accelerators:"));
  if (resources.slices && (!asked.slice || (asked.slices > 1 && asked.slices != *resources.slices)))
    return key_error(ErrorKind::invalid, "resources.slices", "{}, and resources.accelerators: {} {}", *resources.slices,
                     resources.accelerators,
                     asked.slice ? fmt::format("are {}", asked.slices) : "are no TPUs, which come in slices")
        .hinted("leave resources.slices out");
  if (resources.slices) {
    asked.chips = asked.chips / asked.slices * *resources.slices;
    asked.machines = asked.machines / asked.slices * *resources.slices;
    asked.slices = *resources.slices;
  }
  if (planned_on.empty()) return std::optional(std::move(asked));
  const auto differ = [&] {
    return error(ErrorKind::invalid, "the plan was made for {}, and resources.accelerators says {}{}",
                 elsewhere ? planned_on : kThisMachine, resources.accelerators,
                 resources.slices ? fmt::format(", {} slices", *resources.slices) : "")
        .hinted(fmt::format("a plan for it: systole plan JOB.yaml --on {} --out plan.json", resources.accelerators));
  };
  if (!elsewhere) return differ();
  RequestedHardware planned = TRY(asked_by(ask, planned_on, "the plan:"));
  if (!agree(asked, planned)) return differ();
  return std::optional(std::move(planned));  // the plan's machine is the priced one
}

// Checks a count in the workload against the hardware.
Status check_number(const char* key, std::int64_t said, std::int64_t is, const ClusterJob& job, const char* what) {
  if (said == is) return {};
  return key_error(ErrorKind::invalid, key, "{}, and {} has {} {}", said, job.on, is, what)
      .hinted(fmt::format("{}: {}, or leave it out", key, is));
}

Status set_terms(const RenderRequest& ask, ClusterJob& job) {
  const ResourcesSpec& resources = ask.workload.resources;
  job.terms = resources.provisioning;
  job.reservation = resources.reservation;
  if (job.terms == Provisioning::reservation && job.reservation.empty())
    return key_error(ErrorKind::invalid, "resources.provisioning", "reserved, and no reservation is named")
        .hinted("resources: { provisioning: reserved, reservation: NAME }");
  if (job.machine == nullptr || !job.terms || job.machine->had_by(*job.terms)) return {};
  std::vector<std::string> terms;
  for (const Provisioning one : job.machine->provisioning) {
    std::string name(one == Provisioning::reservation ? "reserved" : name_of(one));
    std::ranges::replace(name, '_', '-');
    terms.push_back(std::move(name));
  }
  return key_error(ErrorKind::invalid, "resources.provisioning", "{} is not had so", job.machine->name)
      .hinted(fmt::format("{}", fmt::join(terms, ", ")));
}

}  // namespace

Status set_hardware(const RenderRequest& ask, ClusterJob& job) {
  const std::optional<RequestedHardware> asked = TRY(resolved(ask));
  if (!asked) return set_terms(ask, job);
  const ResourcesSpec& resources = ask.workload.resources;
  job.slice = asked->slice;
  job.slices = asked->slices;
  const auto named = [&](const std::string& name) -> const MachineType* {
    const auto found = std::ranges::find(ask.facts.machines, name, &MachineType::name);
    return found == ask.facts.machines.end() ? nullptr : &*found;
  };
  if (asked->slice)
    job.machine = named(asked->slice->machine);
  else if (!asked->types.empty())
    job.machine = asked->types.front();
  job.on = asked->slice ? asked->slice->by_shape() + (asked->slices > 1 ? fmt::format(":{}", asked->slices) : "")
           : job.machine == nullptr    ? fmt::format("{}:{}", asked->chip->name, asked->chips)
           : job.machine->host.empty() ? fmt::format("{}:{}", job.machine->name, asked->machines)
                                       : fmt::format("{}:{}@{}", asked->chip->name, asked->chips, job.machine->name);
  if (job.machine == nullptr)
    return error(ErrorKind::unsupported, "{}: the catalog knows no machine that holds it", job.on)
        .hinted("a machine of your own in the catalog, or resources.nodes and gpus_per_node in its place");
  if (!asked->slice && job.machine->accelerators < 1)
    return error(ErrorKind::unsupported, "{}: {} of an accelerator, which trains nothing by itself", job.on,
                 job.machine->accelerators_text())
        .hinted("systole catalog machines --accelerator " + asked->chip->name);
  job.fabric = fabric_of(ask.facts.fabrics, *job.machine);
  if (resources.nodes)
    TRY(check_number("resources.nodes", resources.nodes->most, asked->machines, job, "machines"));
  else
    job.nodes = {asked->machines, asked->machines};
  if (!asked->slice) job.gpus_per_node = static_cast<std::int64_t>(job.machine->accelerators);
  if (resources.gpus_per_node && asked->slice)
    return key_error(ErrorKind::invalid, "resources.gpus_per_node", "{}, and {} are TPUs", *resources.gpus_per_node,
                     job.on)
        .hinted("leave it out");
  if (resources.gpus_per_node)
    TRY(check_number("resources.gpus_per_node", *resources.gpus_per_node, job.gpus_per_node, job, "GPUs a machine"));
  return set_terms(ask, job);
}

}  // namespace systole
