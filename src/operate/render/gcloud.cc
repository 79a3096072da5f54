// Target gcloud: the one command that makes the machines which the workload names. What a key of resources says is said
// once, there; gcloud's section has the rest of the command.
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "ground/base/errors.h"
#include "operate/render/cluster_job.h"
#include "operate/render/gcloud_machines.h"
#include "operate/render/names.h"
#include "operate/render/quote.h"

namespace systole {
namespace {

using Create = GcloudSpec::Create;

// --name=value, or --name.
std::string option(std::string_view name, std::string_view value) {
  return value.empty() ? fmt::format("--{}", name) : fmt::format("--{}={}", name, shell_word(value));
}

class Command {
 public:
  explicit Command(const Workload& w) : w_(w), g_(w.gcloud) {}

  std::vector<std::string> options() {
    const bool pool = g_.create == Create::node_pool, of_gke = pool || g_.create == Create::cluster;
    add("project", !g_.project.empty() ? g_.project : of_gke ? w_.gke.project : "");
    if (pool) add("cluster", w_.gke.cluster);
    const std::string& place = g_.zone.empty() ? w_.gke.location : g_.zone;
    add(is_gcp_region(place) ? "region" : "zone", place);
    add("machine-type", g_.machine.empty() && pool ? w_.gke.machine : g_.machine);
    add(g_.create == Create::tpu_vm ? "accelerator-type" : "accelerator", g_.accelerator);
    nodes();
    terms();
    for (const auto& [name, values] : g_.options) {
      std::string_view rest = values;  // one that was said several times has a line each
      do {
        const std::size_t end = rest.find('\n');
        options_.push_back(option(name, rest.substr(0, end)));
        rest = end == rest.npos ? "" : rest.substr(end + 1);
      } while (!rest.empty());
    }
    return std::move(options_);
  }

 private:
  void add(std::string_view name, const std::string& value) {
    if (!value.empty()) options_.push_back(option(name, value));
  }

  void nodes() {
    if (g_.create != Create::node_pool && g_.create != Create::cluster) return;
    if (!w_.resources.nodes) return;
    const CountRange& n = *w_.resources.nodes;
    if (!n.elastic()) return add("num-nodes", std::to_string(n.most));
    options_.emplace_back("--enable-autoscaling");
    if (!g_.options.contains("min-nodes")) add("min-nodes", std::to_string(n.least));
    add("max-nodes", std::to_string(n.most));
  }

  void terms() {
    const std::optional<Provisioning>& terms = w_.resources.provisioning;
    if (!terms) return;
    const bool instances = g_.create == Create::instances;
    const bool legacy = g_.options.contains("preemptible");
    switch (*terms) {
      case Provisioning::spot:
        if (!legacy) instances ? add("provisioning-model", "SPOT") : options_.push_back("--spot");
        return;
      case Provisioning::on_demand:
        if (instances) add("provisioning-model", "STANDARD");
        return;
      case Provisioning::flex_start:
        instances ? add("provisioning-model", "FLEX_START") : options_.push_back("--flex-start");
        return;
      case Provisioning::reservation:
        add("reservation-affinity", "specific");
        return add("reservation", w_.resources.reservation);
      default: return;
    }
  }

  const Workload& w_;
  const GcloudSpec& g_;
  std::vector<std::string> options_;
};

// What resources say of accelerators has to be what the command makes.
Status check_accelerators(const RenderAsk& ask) {
  const Workload& w = ask.workload;
  if (w.resources.accelerators.empty()) return {};
  const std::string& machine = w.gcloud.machine.empty() ? w.gke.machine : w.gcloud.machine;
  const std::int64_t nodes = w.resources.nodes ? w.resources.nodes->most : 1;
  const std::string made = accelerators_of(ask.facts.machines, machine, w.gcloud.accelerator, nodes);
  if (made.empty() || made == w.resources.accelerators) return {};
  return error(ErrorKind::invalid, "the command makes {}, and resources.accelerators says {}", made,
               comment_text(w.resources.accelerators))
      .hinted(fmt::format("resources.accelerators: {}, or another gcloud.machine and gcloud.accelerator", made));
}

const MachineType* type_named(std::span<const MachineType> machines, std::string_view name) {
  const auto found = std::ranges::find(machines, name, &MachineType::name);
  return found == machines.end() ? nullptr : &*found;
}

// Of machines of Compute Engine, those of a pool among them; a Cloud TPU VM spends limits of another service.
std::vector<QuotaNeed> quotas_of(const RenderAsk& ask) {
  const Workload& w = ask.workload;
  if (w.gcloud.create != Create::instances && w.gcloud.create != Create::node_pool) return {};
  const std::string& machine = w.gcloud.machine.empty() ? w.gke.machine : w.gcloud.machine;
  QuotaSpend spend{.machine = machine, .terms = w.resources.provisioning.value_or(Provisioning::on_demand)};
  spend.machines = w.resources.nodes ? w.resources.nodes->most : 1;
  const std::string made = accelerators_of(ask.facts.machines, machine, w.gcloud.accelerator, spend.machines);
  const std::size_t colon = made.find(':');
  if (colon != made.npos) {
    const std::string name = made.substr(0, colon);
    const std::int64_t count = std::atoll(made.c_str() + colon + 1);
    const MachineType* type = type_named(ask.facts.machines, name);
    spend.accelerator = type == nullptr ? name : type->accelerator;
    const std::int64_t chips = type == nullptr ? count : count * std::llround(type->accelerators);
    (type != nullptr && type->kind == MachineKind::tpu ? spend.chips : spend.gpus) = chips;
  }
  return quota_needs(ask.facts.quotas, ask.facts.machines, std::span(&spend, 1));
}

}  // namespace

std::string_view gcloud_group(GcloudSpec::Create create) {
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
  std::string type(accelerator);
  std::int64_t count = 1;
  if (const std::size_t at = accelerator.find("type="); at != accelerator.npos) {
    type = accelerator.substr(at + 5, accelerator.find(',', at) - at - 5);
    if (const std::size_t of = accelerator.find("count="); of != accelerator.npos)
      count = std::clamp<std::int64_t>(std::atoll(std::string(accelerator.substr(of + 6)).c_str()), 1, 1'000'000);
  } else if (!type.empty()) {
    return type;
  }
  std::ranges::transform(type, type.begin(), [](char c) {
    return c == '_' ? '-' : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  for (const MachineType& each : machines)
    if (each.name == machine && each.accelerators >= 1 && each.host.empty())
      return fmt::format("{}:{}", each.name, nodes);
  for (const MachineType& each : machines)
    if (!type.empty() && each.gke_label == type &&
        (each.host.empty() || machine.empty() || matches(each.host, machine)))
      return fmt::format("{}:{}", each.accelerator, count * nodes);
  return "";
}

Result<Rendered> render_gcloud(const RenderAsk& ask) {
  const Workload& w = ask.workload;
  const GcloudSpec& g = w.gcloud;
  std::vector<Error> wrong;
  if (g.create == Create::nothing)
    wrong.push_back(error(ErrorKind::invalid, "gcloud.create: what is made is not said")
                        .hinted("gcloud: { create: instances, name: NAME, zone: us-central1-a, machine: TYPE }"));
  if (g.name.empty() || g.name[0] == '-')
    wrong.push_back(
        error(ErrorKind::invalid, "gcloud.name: what is made has no name").hinted("gcloud: { name: NAME }"));
  if (const Status agreed = check_accelerators(ask); !agreed.ok()) wrong.push_back(agreed.error());
  const Result<std::string> run = run_name(ask.run, w);
  if (!run.ok()) wrong.push_back(run.error());
  if (!wrong.empty()) return together(std::move(wrong));
  const std::string group(gcloud_group(g.create)), name = shell_word(g.name);
  const std::vector<std::string> options = Command(w).options();
  std::vector<std::string> places;
  for (const std::string& each : options)
    for (const std::string_view kind : {"--project=", "--cluster=", "--zone=", "--region="})
      if (each.starts_with(kind)) places.push_back(each);
  Rendered rendered;
  rendered.run = *run;
  rendered.folder = w.folder.empty() ? "runs" : w.folder;
  rendered.files.push_back(
      {"machines.sh",
       fmt::format("#!/bin/bash\n# {}: {} on gcloud, workload {:.12}\nset -euo pipefail\n{} \\\n  {}\n", ask.version,
                   *run, ask.workload_file.sha256, fmt::format("gcloud {} create {}", group, name),
                   fmt::join(options, " \\\n  ")),
       true});
  if (options.empty()) {
    std::string& text = rendered.files.back().text;
    text.replace(text.find(" \\\n  \n"), 6, "\n");
  }
  const std::string& place = g.zone.empty() ? w.gke.location : g.zone;
  rendered.quotas = quotas_of(ask);
  rendered.region = is_gcp_region(place) ? place : std::string(gcp_region_of(place));
  rendered.commands.emplace_back("make", "bash " + shell_word(ask.place + "/machines.sh"));
  rendered.commands.emplace_back("undo", fmt::format("gcloud {} delete {} {}", group, name, fmt::join(places, " ")));
  if (w.kind != Workload::Kind::machines)
    rendered.warnings.push_back(
        "it makes the machines and starts nothing on them: render or submit --on ssh, or "
        "kubernetes, does");
  return rendered;
}

}  // namespace systole
