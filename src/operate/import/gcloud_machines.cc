#include "operate/import/gcloud_machines.h"

#include "ground/catalog/tables.h"
#include "operate/import/gcloud_flags.h"
#include "operate/import/gcloud_lists.h"
#include "operate/render/gcloud_machines.h"

namespace systole {
namespace {

using Value = FlagValue;
using Create = GcloudSpec::Create;

class Maker {
 public:
  Maker(Create create, const std::vector<ParsedFlag>& seen, Draft& draft)
      : create_(create), seen_(seen), draft_(draft) {}

  void read(std::span<const ShellWord> names, const std::string& from) {
    draft_.set("gcloud.create", std::string(names_[static_cast<std::size_t>(create_)]), from);
    if (names.size() > 1)
      return draft_.wrong(error(ErrorKind::unsupported, "{}: it makes several; a workload says one", origin(from))
                              .hinted("paste the line with one name"));
    for (const ShellWord& name : names) {
      if (name.expands) {
        draft_.left_out("the name " + name.raw, "it is known only where it runs: gcloud.name");
        continue;
      }
      draft_.set("gcloud.name", name.text, from);
      if (create_ == Create::cluster) draft_.set("gke.cluster", name.text, from);
    }
    read_node_counts(seen_, options_, draft_);
    for (const ParsedFlag& flag : seen_) {
      if (flag.expands)
        draft_.left_out(flag.value.from, "its value is known only where it runs");
      else
        one(flag);
    }
    for (const auto& [name, said] : options_) draft_.set_entry("gcloud.options", name, said.text, said.from);
    read_terms(seen_, draft_);
    const std::string accelerators = gcloud_accelerators(machine_, accelerator_, draft_);
    if (!accelerators.empty()) draft_.set("resources.accelerators", accelerators, machine_from_);
  }

 private:
  static constexpr std::string_view names_[] = {"nothing", "instances", "tpu-vm", "node-pool", "cluster"};
  bool of_gke() const { return create_ == Create::node_pool || create_ == Create::cluster; }

  void one(const ParsedFlag& flag) {
    const auto& [text, from] = flag.value;
    if (flag.name == "project") return draft_.set(of_gke() ? "gke.project" : "gcloud.project", text, from);
    if (flag.name == "zone" || flag.name == "region" || flag.name == "location")
      return draft_.set(of_gke() ? "gke.location" : "gcloud.zone", text, from);
    if (flag.name == "cluster") return draft_.set("gke.cluster", text, from);
    if (flag.name == "machine-type") {
      machine_ = text;
      machine_from_ = from + (machine_from_.empty() ? "" : " " + machine_from_);
      return draft_.set(create_ == Create::node_pool ? "gke.machine" : "gcloud.machine", text, from);
    }
    if (flag.name == "accelerator" || flag.name == "accelerator-type") return accelerator(flag.value);
    for (const std::string_view read_elsewhere :
         {"num-nodes", "min-nodes", "max-nodes", "enable-autoscaling", "spot", "preemptible", "flex-start",
          "provisioning-model", "reservation", "reservation-affinity"})
      if (flag.name == read_elsewhere) return;
    if (is_of_machines(flag)) return keep_option(flag, options_);
    draft_.left_out(from, std::string(flag.why));
  }

  void accelerator(const Value& value) {  // type=nvidia-tesla-a100,count=4, or v4-8
    std::string plain;
    for (const auto& [name, said] : gcloud_map(value.text)) {
      plain += (plain.empty() ? "" : ",") + name + (said.empty() ? "" : "=" + said);
      if (name != "count") continue;
      if (const auto n = count_of(draft_, {said, value.from}))
        draft_.ask(&RequestedResources::gpus_per_node, *n, value.from);
    }
    if (plain.starts_with("type=") && plain.find("count=") == plain.npos)
      draft_.ask(&RequestedResources::gpus_per_node, std::int64_t{1}, value.from);
    accelerator_ = plain;
    machine_from_ += (machine_from_.empty() ? "" : " ") + value.from;
    draft_.set("gcloud.accelerator", plain, value.from);
  }

  Create create_;
  const std::vector<ParsedFlag>& seen_;
  Draft& draft_;
  GcloudOptions options_;
  std::string machine_, accelerator_, machine_from_;
};

}  // namespace

void keep_option(const ParsedFlag& flag, GcloudOptions& options) {
  FlagValue& said = options[std::string(flag.name)];
  said.text += (said.from.empty() ? "" : "\n") + flag.value.text;
  said.from += (said.from.empty() ? "" : " ") + flag.value.from;
}

std::string gcloud_accelerators(const std::string& machine, const std::string& accelerator, const Draft& draft) {
  CatalogTables tables = CatalogTables::read().value();
  const auto& nodes = draft.asked().nodes;
  return accelerators_of(tables.machines().value(), machine, accelerator, nodes ? nodes->value.most : 1);
}

void read_gcloud_machines(Create create, std::span<const ShellWord> names, const std::string& from,
                          const std::vector<ParsedFlag>& seen, Draft& draft) {
  Maker(create, seen, draft).read(names, from);
}

}  // namespace systole
