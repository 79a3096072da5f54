// Target gcloud: the one command that creates a workload's machines. Keys of resources are not repeated in the gcloud
// section, which has the rest of the command.
#include "operate/targets/gcloud/machines.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

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

bool makes_nodes(const GcloudSpec& g) { return g.create == Create::node_pool || g.create == Create::cluster; }

const std::string& place_of(const Workload& w) { return w.gcloud.zone.empty() ? w.gke.location : w.gcloud.zone; }

const std::string& machine_of(const Workload& w) {
  const bool of_pool = w.gcloud.machine.empty() && w.gcloud.create == Create::node_pool;
  return of_pool ? w.gke.machine : w.gcloud.machine;
}

class Command {
 public:
  explicit Command(const Workload& w) : w_(w), g_(w.gcloud) {}

  std::vector<std::string> options() {
    add("project", !g_.project.empty() ? g_.project : makes_nodes(g_) ? w_.gke.project : "");
    if (g_.create == Create::node_pool) add("cluster", w_.gke.cluster);
    const std::string& place = place_of(w_);
    add(is_gcp_region(place) ? "region" : "zone", place);
    add("machine-type", machine_of(w_));
    add(g_.create == Create::tpu_vm ? "accelerator-type" : "accelerator", g_.accelerator);
    nodes();
    terms();
    for (const auto& [name, values] : g_.options) {
      std::string_view rest = values;  // a repeated option has a value per line
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
    if (!makes_nodes(g_) || !w_.resources.nodes) return;
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

// The accelerators in resources must be those that the command creates.
Status check_accelerators(const RenderRequest& ask) {
  const Workload& w = ask.workload;
  if (w.resources.accelerators.empty()) return {};
  const std::int64_t nodes = w.resources.nodes ? w.resources.nodes->most : 1;
  const std::string made = accelerators_of(ask.facts.machines, machine_of(w), w.gcloud.accelerator, nodes);
  if (made.empty() || made == w.resources.accelerators) return {};
  return error(ErrorKind::invalid, "the command makes {}, and resources.accelerators says {}", made,
               comment_text(w.resources.accelerators))
      .hinted(fmt::format("resources.accelerators: {}, or another gcloud.machine and gcloud.accelerator", made));
}

// GKE creates --num-nodes, and at most --max-nodes, in each zone of a pool (reference of gcloud container node-pools
// create): in --node-locations, otherwise in the named zone. Nothing: GKE chooses zones of a region.
std::optional<std::int64_t> zones_of(const Workload& w) {
  if (!makes_nodes(w.gcloud)) return 1;
  if (const auto zones = w.gcloud.options.find("node-locations"); zones != w.gcloud.options.end())
    return 1 + std::ranges::count(zones->second, ',');
  return is_gcp_region(place_of(w)) ? std::optional<std::int64_t>() : 1;
}

// For machines of Compute Engine, including those of GKE; a Cloud TPU VM uses quotas of another service.
std::vector<QuotaNeed> quotas_of(const RenderRequest& ask) {
  const Workload& w = ask.workload;
  if (w.gcloud.create != Create::instances && !makes_nodes(w.gcloud)) return {};
  const std::string& machine = machine_of(w);
  const std::optional<std::int64_t> zones = zones_of(w);
  QuotaSpend spend{.machine = machine, .terms = w.resources.provisioning.value_or(Provisioning::on_demand)};
  spend.machines = (w.resources.nodes ? w.resources.nodes->most : 1) * zones.value_or(1);
  const GcloudAccelerators made =
      gcloud_accelerators(ask.facts.machines, machine, w.gcloud.accelerator, spend.machines);
  if (made.count > 0) {
    const MachineType* type = type_named(ask.facts.machines, made.name);
    spend.accelerator = type == nullptr ? made.name : type->accelerator;
    const std::int64_t chips = type == nullptr ? made.count : made.count * std::llround(type->accelerators);
    (type != nullptr && type->kind == MachineKind::tpu ? spend.chips : spend.gpus) = chips;
  }
  std::vector<QuotaNeed> needs = quota_needs(ask.facts.quotas, ask.facts.machines, std::span(&spend, 1));
  for (QuotaNeed& need : needs) need.in_each_zone = !zones;
  return needs;
}

}  // namespace

Result<Rendered> render_gcloud(const RenderRequest& ask) {
  const Workload& w = ask.workload;
  const GcloudSpec& g = w.gcloud;
  std::vector<Error> wrong;
  if (g.create == Create::nothing)
    wrong.push_back(key_error(ErrorKind::invalid, "gcloud.create", "what is made is not said")
                        .hinted("gcloud: { create: instances, name: NAME, zone: us-central1-a, machine: TYPE }"));
  if (g.name.empty() || g.name[0] == '-')
    wrong.push_back(
        key_error(ErrorKind::invalid, "gcloud.name", "what is made has no name").hinted("gcloud: { name: NAME }"));
  if (const Status agreed = check_accelerators(ask); !agreed.ok()) wrong.push_back(agreed.error());
  const Result<std::string> run = run_name(ask.run, w);
  if (!run.ok()) wrong.push_back(run.error());
  if (!wrong.empty()) return together(std::move(wrong));
  const std::string group(gcloud_group(g.create)), name = shell_word(g.name);
  std::vector<std::string> options = Command(w).options();
  std::vector<std::string> places;
  for (const std::string& each : options)
    for (const std::string_view kind : {"--project=", "--cluster=", "--zone=", "--region="})
      if (each.starts_with(kind)) places.push_back(each);
  Rendered rendered;
  rendered.run = *run;
  options.insert(options.begin(), fmt::format("gcloud {} create {}", group, name));
  rendered.files.push_back({"machines.sh",
                            fmt::format("#!/bin/bash\n# {}: {} on gcloud, workload {:.12}\nset -euo pipefail\n{}\n",
                                        ask.version, *run, ask.workload_file.sha256, fmt::join(options, " \\\n  ")),
                            true});
  const std::string& place = place_of(w);
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
