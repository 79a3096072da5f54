#include "operate/render/quota_need.h"

#include <algorithm>
#include <cmath>

#include "operate/render/cluster_job.h"

namespace systole {
namespace {

// A3's own limit, of the limits that are one a family: "vm_family=A3".
std::string dimension_of(const QuotaRow& row, const std::string& machine) {
  if (row.dimension != "vm_family") return row.dimension;
  std::string family = machine.substr(0, machine.find('-'));
  for (char& c : family) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return "vm_family=" + family;
}

}  // namespace

std::vector<QuotaNeed> quota_needs(const RenderAsk& ask, const ClusterJob& job, const std::string& machine) {
  Provisioning terms = job.terms.value_or(Provisioning::on_demand);
  if (terms == Provisioning::reservation) return {};  // it was spent when the machines were set aside
  std::vector<QuotaNeed> needs;
  const std::string accelerator = job.machine == nullptr ? "" : job.machine->accelerator;
  const auto add = [&](QuotaOf of, std::int64_t amount, const std::string& what, bool must) {
    if (amount == 0) return;
    const std::string words = fmt::format("{} x {}", amount, what);
    const auto rows = quotas_of(ask.facts.quotas, of, machine, accelerator, terms);
    for (const QuotaRow* row : rows) needs.push_back({*row, words, amount, dimension_of(*row, machine)});
    bool named = false;  // by more than what all have in common
    for (const QuotaRow* row : rows) named |= !row->global;
    if (must && !named) needs.push_back({std::nullopt, words, amount, ""});
  };
  const std::int64_t nodes = job.nodes.most;
  add(QuotaOf::gpu, nodes * job.gpus_per_node, accelerator, true);
  if (job.slice) add(QuotaOf::tpu, job.slices * job.slice->chips, accelerator, true);
  // A host of TPUs comes with them.
  const MachineType* type = job.slice ? nullptr : job.machine;
  if (type == nullptr || !type->host.empty()) {
    const auto found = std::ranges::find(ask.facts.machines, machine, &MachineType::name);
    type = job.slice || found == ask.facts.machines.end() ? nullptr : &*found;
  }
  if (type == nullptr) return needs;
  if (type->vcpus) add(QuotaOf::vcpu, nodes * std::llround(type->vcpus->least), "vCPU of " + machine, true);
  if (type->local_ssd == "included" && type->local_ssd_gib)
    add(QuotaOf::local_ssd, nodes * std::llround(type->local_ssd_gib->least), "GB of local SSD", false);
  return needs;
}

std::vector<std::string> quota_lines(const std::vector<QuotaNeed>& needs, const std::string& region) {
  std::vector<std::string> lines;
  for (const QuotaNeed& need : needs) {
    if (!need.row) {
      lines.push_back(fmt::format("unknown: no list names the limit of {} in {}", need.of, region));
      continue;
    }
    std::string line =
        fmt::format("{}{} {}: {} {}", need.row->metric, need.dimension.empty() ? "" : " (" + need.dimension + ")",
                    need.row->global ? "of the project" : "in " + region, need.amount, need.row->unit);
    if (!need.row->usual.empty()) line += fmt::format("; usually {}", need.row->usual);
    lines.push_back(std::move(line));
  }
  return lines;
}

Node quota_node(const std::vector<QuotaNeed>& needs, const std::string& region) {
  Node all = Node::sequence();
  for (const QuotaNeed& need : needs) {
    Node node = Node::map({{"known", need.row.has_value()}, {"of", need.of}, {"amount", need.amount}});
    if (need.row) {
      node.set("metric", need.row->metric).set("unit", need.row->unit);
      node.set("region", need.row->global ? "global" : region);
      if (!need.row->id.empty()) node.set("id", need.row->id);
      if (!need.dimension.empty()) node.set("dimension", need.dimension);
      if (!need.row->usual.empty()) node.set("usual", need.row->usual);
      if (!need.row->note.empty()) node.set("note", need.row->note);
      node.set("source", need.row->dated.source).set("date", need.row->dated.date);
    }
    all.push(std::move(node));
  }
  return all;
}

}  // namespace systole
