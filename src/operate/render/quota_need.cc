#include "operate/render/quota_need.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ground/base/letter_case.h"
#include "operate/render/quote.h"

namespace systole {
namespace {

// The dimension of a quota per machine family: "vm_family=A3".
std::string dimension_of(const QuotaRow& row, const std::string& machine) {
  if (row.dimension != "vm_family") return row.dimension;
  return "vm_family=" + upper_case(machine.substr(0, machine.find('-')));
}

std::string shown(const std::string& region) { return region.empty() ? "REGION" : region; }

class Needs {
 public:
  Needs(std::span<const QuotaRow> quotas, std::span<const MachineType> types) : quotas_(quotas), types_(types) {}

  void add(const QuotaSpend& spend) {
    if (spend.terms != Provisioning::reservation) {  // a reservation used its quota when it was made
      add(spend, QuotaOf::gpu, spend.gpus, spend.accelerator, true);
      add(spend, QuotaOf::tpu, spend.chips, spend.accelerator, true);
      if (const MachineType* type = spend.chips > 0 ? nullptr : type_named(types_, spend.machine))
        add_machine(spend, *type);
    }
    add(spend, QuotaOf::disk, spend.disk_gb, "GB of boot disks of " + spend.machine, true);
    add(spend, QuotaOf::address, spend.addresses, spend.addresses == 1 ? "external address" : "external addresses",
        true);
  }
  std::vector<QuotaNeed> take() { return std::move(needs_); }

 private:
  void add_machine(const QuotaSpend& spend, const MachineType& type) {
    if (type.vcpus)
      add(spend, QuotaOf::vcpu, spend.machines * std::llround(type.vcpus->least), "vCPU of " + spend.machine, true);
    if (type.local_ssd == "included" && type.local_ssd_gib)
      add(spend, QuotaOf::local_ssd, spend.machines * std::llround(type.local_ssd_gib->least), "GB of local SSD",
          false);
  }

  // `must`: without a specific quota, reports that none is known.
  void add(const QuotaSpend& spend, QuotaOf of, std::int64_t amount, const std::string& what, bool must) {
    if (amount == 0) return;
    const std::string words = fmt::format("{} x {}", amount, what);
    bool named = false;  // by a quota beyond the ones all machines share
    for (const QuotaRow* row : quotas_of(quotas_, of, spend.machine, spend.accelerator, spend.terms)) {
      named |= !row->global;
      note({*row, words, amount, dimension_of(*row, spend.machine)});
    }
    if (must && !named) needs_.push_back({std::nullopt, words, amount, ""});
  }

  void note(QuotaNeed need) {
    const auto same = [&](const QuotaNeed& other) {
      return other.row && other.row->metric == need.row->metric && other.dimension == need.dimension;
    };
    const auto found = std::ranges::find_if(needs_, same);
    if (found != needs_.end()) {
      found->amount += need.amount;
      found->of += ", " + need.of;
    } else {
      needs_.push_back(std::move(need));
    }
  }

  std::span<const QuotaRow> quotas_;
  std::span<const MachineType> types_;
  std::vector<QuotaNeed> needs_;
};

}  // namespace

std::vector<QuotaNeed> quota_needs(std::span<const QuotaRow> quotas, std::span<const MachineType> types,
                                   std::span<const QuotaSpend> spends) {
  Needs needs(quotas, types);
  for (const QuotaSpend& spend : spends) needs.add(spend);
  return needs.take();
}

bool exceeds_default(const QuotaNeed& need) {
  return need.row && need.row->most_unasked && need.amount > *need.row->most_unasked;
}

std::string quota_request(const QuotaNeed& need, const std::string& region, const std::string& project) {
  if (need.row->id.empty())
    return fmt::format("https://console.cloud.google.com/iam-admin/quotas takes it: {}, {}", need.row->metric,
                       need.row->global ? "global" : shown(region));
  std::string dimensions = need.row->global ? "" : "region=" + shown(region);
  if (!need.dimension.empty()) dimensions += (dimensions.empty() ? "" : ",") + need.dimension;
  const std::string amount =
      need.in_each_zone ? fmt::format("$(({} * ${{ZONES:?}}))", need.amount) : std::to_string(need.amount);
  return fmt::format(
      "gcloud beta quotas preferences create --service=compute.googleapis.com --project={} "
      "--quota-id={}{} --preferred-value={} --email=\"$(gcloud config get-value account)\"",
      project.empty() ? "\"$(gcloud config get-value project)\"" : shell_word(project), need.row->id,
      dimensions.empty() ? "" : " --dimensions=" + dimensions, amount);
}

std::vector<std::string> quota_lines(const std::vector<QuotaNeed>& needs, const std::string& region) {
  std::vector<std::string> lines;
  for (const QuotaNeed& need : needs) {
    if (!need.row) {
      lines.push_back(fmt::format("unknown: no list names the limit of {} in {}", need.of, shown(region)));
      continue;
    }
    std::string unit = need.row->unit;
    if (need.amount == 1 && unit.ends_with('s')) unit.pop_back();
    std::string line =
        fmt::format("{}{} {}: {} {}", need.row->metric, need.dimension.empty() ? "" : " (" + need.dimension + ")",
                    need.row->global ? "of the project" : "in " + shown(region), need.amount, unit);
    if (need.in_each_zone) line += " in each zone";
    if (!need.row->usual.empty()) line += fmt::format("; usually {}", need.row->usual);
    lines.push_back(std::move(line));
  }
  return lines;
}

Node quota_node(const std::vector<QuotaNeed>& needs, const std::string& region) {
  Node all = Node::sequence();
  for (const QuotaNeed& need : needs) {
    Node node = Node::map({{"known", need.row.has_value()}, {"of", need.of}, {"amount", need.amount}});
    if (need.in_each_zone) node.set("in_each_zone", true);
    if (need.row) {
      node.set("metric", need.row->metric).set("unit", need.row->unit);
      if (need.row->global || !region.empty()) node.set("region", need.row->global ? "global" : region);
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
