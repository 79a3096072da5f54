// Lines of gcloud. One that makes machines says them as resources, and the rest of it as `gcloud`, of which render
// --on gcloud writes the line again; one that starts a job says its program; others are told.
#include <algorithm>
#include <map>

#include "ground/catalog/tables.h"
#include "operate/import/flags.h"
#include "operate/import/launchers.h"
#include "operate/import/script.h"
#include "operate/render/gcloud_machines.h"

namespace systole {
namespace {

using Value = FlagValue;
using Create = GcloudSpec::Create;

constexpr Flag::Takes kNothing = Flag::Takes::nothing, kValue = Flag::Takes::value, kPerhaps = Flag::Takes::perhaps;
constexpr std::string_view kGke = "systole render --on gke writes clusters and node pools";
constexpr std::string_view kMachines = "it is of machines, and this line makes none";
constexpr std::string_view kWhere = "where is chosen by systole plan --on, and by who makes the machines";
constexpr std::string_view kShown = "it is how gcloud shows things";
constexpr std::string_view kBudget = "a budget is an account's; systole runs shows what a run has cost";
constexpr std::string_view kStorage = "claims mounts what is there";
constexpr std::string_view kVertex = "the service's own; no key of a workload says it";

constexpr Flag kFlags[] = {
    {"zone", '\0', kValue, nullptr, kWhere},
    {"region", '\0', kValue, nullptr, kWhere},
    {"location", '\0', kValue, nullptr, kWhere},
    {"project", '\0', kValue, nullptr, kWhere},
    {"worker", '\0', kValue, nullptr, "the agent starts ranks on all nodes"},
    {"node", '\0', kValue, nullptr, "the agent starts ranks on all nodes"},
    {"cluster", '\0', kValue, nullptr, kGke},
    // How gcloud itself behaves.
    {"limit", '\0', kValue, nullptr, kShown},
    {"format", '\0', kValue, nullptr, kShown},
    {"filter", '\0', kValue, nullptr, kShown},
    {"quiet", 'q', kNothing, nullptr, kShown},
    {"async", '\0', kPerhaps, nullptr, kShown},
    {"verbosity", '\0', kValue, nullptr, kShown},
    {"account", '\0', kValue, nullptr, kShown},
    {"configuration", '\0', kValue, nullptr, kShown},
    {"impersonate-service-account", '\0', kValue, nullptr, kShown},
    // Of jobs.
    {"display-name", '\0', kValue, nullptr, kVertex},
    {"worker-pool-spec", '\0', kValue, nullptr, kVertex},
    {"command", '\0', kValue, nullptr, kVertex},
    {"args", '\0', kValue, nullptr, kVertex},
    {"timeout", '\0', kValue, nullptr, kVertex},
    {"python-package-uris", '\0', kValue, nullptr, "the image has the files: systole render --on docker"},
    {"config", '\0', kValue, nullptr, "what that file says is not read"},
    {"kms-key", '\0', kValue, nullptr, kVertex},
    {"kms-project", '\0', kValue, nullptr, kVertex},
    {"kms-location", '\0', kValue, nullptr, kVertex},
    {"kms-keyring", '\0', kValue, nullptr, kVertex},
    {"persistent-resource-id", '\0', kValue, nullptr, kVertex},
    {"enable-web-access", '\0', kNothing, nullptr, kVertex},
    {"enable-dashboard-access", '\0', kNothing, nullptr, kVertex},
    // Of machines.
    {"machine-type", '\0', kValue, nullptr, kMachines},
    {"accelerator", '\0', kValue, nullptr, kMachines},
    {"accelerator-type", '\0', kValue, nullptr, kMachines},
    {"num-nodes", '\0', kValue, nullptr, kMachines},
    {"min-nodes", '\0', kValue, nullptr, kMachines},
    {"max-nodes", '\0', kValue, nullptr, kMachines},
    {"total-min-nodes", '\0', kValue, nullptr, kMachines},
    {"total-max-nodes", '\0', kValue, nullptr, kMachines},
    {"enable-autoscaling", '\0', kNothing, nullptr, kMachines},
    {"provisioning-model", '\0', kValue, nullptr, kMachines},
    {"spot", '\0', kNothing, nullptr, kMachines},
    {"preemptible", '\0', kNothing, nullptr, kMachines},
    {"flex-start", '\0', kNothing, nullptr, kMachines},
    {"reservation", '\0', kValue, nullptr, kMachines},
    {"reservation-affinity", '\0', kValue, nullptr, kMachines},
    {"reserved", '\0', kNothing, nullptr, kMachines},
    {"best-effort", '\0', kNothing, nullptr, kMachines},
    {"node-locations", '\0', kValue, nullptr, kMachines},
    {"location-policy", '\0', kValue, nullptr, kMachines},
    {"type", '\0', kValue, nullptr, kMachines},
    {"topology", '\0', kValue, nullptr, kMachines},
    {"tpu-topology", '\0', kValue, nullptr, kMachines},
    {"version", '\0', kValue, nullptr, kMachines},
    {"range", '\0', kValue, nullptr, kMachines},
    {"data-disk", '\0', kValue, nullptr, kMachines},
    {"internal-ips", '\0', kNothing, nullptr, kMachines},
    {"image", '\0', kValue, nullptr, kMachines},
    {"image-family", '\0', kValue, nullptr, kMachines},
    {"image-project", '\0', kValue, nullptr, kMachines},
    {"image-type", '\0', kValue, nullptr, kMachines},
    {"boot-disk-size", '\0', kValue, nullptr, kMachines},
    {"boot-disk-type", '\0', kValue, nullptr, kMachines},
    {"boot-disk-device-name", '\0', kValue, nullptr, kMachines},
    {"create-disk", '\0', kValue, nullptr, kMachines},
    {"disk", '\0', kValue, nullptr, kMachines},
    {"disk-size", '\0', kValue, nullptr, kMachines},
    {"disk-type", '\0', kValue, nullptr, kMachines},
    {"local-ssd", '\0', kValue, nullptr, kMachines},
    {"local-ssd-count", '\0', kValue, nullptr, kMachines},
    {"local-nvme-ssd-block", '\0', kPerhaps, nullptr, kMachines},
    {"ephemeral-storage-local-ssd", '\0', kPerhaps, nullptr, kMachines},
    {"maintenance-policy", '\0', kValue, nullptr, kMachines},
    {"instance-termination-action", '\0', kValue, nullptr, kMachines},
    {"max-run-duration", '\0', kValue, nullptr, kMachines},
    {"restart-on-failure", '\0', kNothing, nullptr, kMachines},
    {"no-restart-on-failure", '\0', kNothing, nullptr, kMachines},
    {"metadata", '\0', kValue, nullptr, kMachines},
    {"metadata-from-file", '\0', kValue, nullptr, kMachines},
    {"labels", '\0', kValue, nullptr, kMachines},
    {"node-labels", '\0', kValue, nullptr, kMachines},
    {"node-taints", '\0', kValue, nullptr, kMachines},
    {"tags", '\0', kValue, nullptr, kMachines},
    {"description", '\0', kValue, nullptr, kMachines},
    {"hostname", '\0', kValue, nullptr, kMachines},
    {"scopes", '\0', kValue, nullptr, kMachines},
    {"no-scopes", '\0', kNothing, nullptr, kMachines},
    {"service-account", '\0', kValue, nullptr, "kubernetes.service_account says it for pods"},
    {"no-service-account", '\0', kNothing, nullptr, kMachines},
    {"network", '\0', kValue, nullptr, kMachines},
    {"subnet", '\0', kValue, nullptr, kMachines},
    {"subnetwork", '\0', kValue, nullptr, kMachines},
    {"network-interface", '\0', kValue, nullptr, kMachines},
    {"network-tier", '\0', kValue, nullptr, kMachines},
    {"network-performance-configs", '\0', kValue, nullptr, kMachines},
    {"nic-type", '\0', kValue, nullptr, kMachines},
    {"address", '\0', kValue, nullptr, kMachines},
    {"no-address", '\0', kNothing, nullptr, kMachines},
    {"can-ip-forward", '\0', kNothing, nullptr, kMachines},
    {"min-cpu-platform", '\0', kValue, nullptr, kMachines},
    {"threads-per-core", '\0', kValue, nullptr, kMachines},
    {"resource-policies", '\0', kValue, nullptr, kMachines},
    {"placement-type", '\0', kValue, nullptr, kMachines},
    {"placement-policy", '\0', kValue, nullptr, kMachines},
    {"deletion-protection", '\0', kNothing, nullptr, kMachines},
    {"shielded-secure-boot", '\0', kNothing, nullptr, kMachines},
    {"shielded-vtpm", '\0', kNothing, nullptr, kMachines},
    {"shielded-integrity-monitoring", '\0', kNothing, nullptr, kMachines},
    {"enable-gvnic", '\0', kNothing, nullptr, kMachines},
    {"enable-ip-alias", '\0', kNothing, nullptr, kMachines},
    {"enable-private-nodes", '\0', kNothing, nullptr, kMachines},
    {"enable-autorepair", '\0', kNothing, nullptr, kMachines},
    {"no-enable-autorepair", '\0', kNothing, nullptr, kMachines},
    {"enable-autoupgrade", '\0', kNothing, nullptr, kMachines},
    {"no-enable-autoupgrade", '\0', kNothing, nullptr, kMachines},
    {"enable-queued-provisioning", '\0', kNothing, nullptr, kMachines},
    {"additional-node-network", '\0', kValue, nullptr, kMachines},
    {"additional-pod-network", '\0', kValue, nullptr, kMachines},
    {"workload-metadata", '\0', kValue, nullptr, kMachines},
    {"workload-pool", '\0', kValue, nullptr, kMachines},
    {"addons", '\0', kValue, nullptr, kMachines},
    {"release-channel", '\0', kValue, nullptr, kMachines},
    {"cluster-version", '\0', kValue, nullptr, kMachines},
    {"node-version", '\0', kValue, nullptr, kMachines},
    {"max-pods-per-node", '\0', kValue, nullptr, kMachines},
    {"enable-dataplane-v2", '\0', kNothing, nullptr, kMachines},
    {"enable-multi-networking", '\0', kNothing, nullptr, kMachines},
    // Of what is no machine.
    {"billing-account", '\0', kValue, nullptr, kBudget},
    {"budget-amount", '\0', kValue, nullptr, kBudget},
    {"threshold-rule", '\0', kValue, nullptr, kBudget},
    {"file-share", '\0', kValue, nullptr, kStorage},
    {"tier", '\0', kValue, nullptr, kStorage},
};

struct Place {
  std::string_view command;
  Create create = Create::nothing;
  std::string_view why = "";  // the line is told; "" and nothing to create: its program counts
};
constexpr Place kPlaces[] = {
    {"compute instances create", Create::instances},
    {"compute tpus tpu-vm create", Create::tpu_vm},
    {"container node-pools create", Create::node_pool},
    {"container clusters create", Create::cluster},
    {"compute ssh"},
    {"compute tpus tpu-vm ssh"},
    {"ai custom-jobs create"},
    {"filestore instances create", Create::nothing, kStorage},
    {"billing budgets", Create::nothing, kBudget},
    {"", Create::nothing, "it starts no program"},
};

// gcloud's lists: items between commas, or between D where the text begins with ^D^.
std::vector<std::string> list_of(std::string_view text) {
  std::string between = ",";
  if (const std::size_t end = text.starts_with('^') ? text.find('^', 1) : text.npos; end != text.npos && end > 1) {
    between = text.substr(1, end - 1);
    text.remove_prefix(end + 1);
  }
  std::vector<std::string> items;
  while (!text.empty()) {
    const std::size_t end = text.find(between);
    items.emplace_back(text.substr(0, end));
    text = end == text.npos ? "" : text.substr(end + between.size());
  }
  return items;
}

// The same of NAME=VALUE.
std::vector<std::pair<std::string, std::string>> map_of(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const std::string& item : list_of(text)) {
    const std::size_t equals = item.find('=');
    pairs.emplace_back(item.substr(0, equals), equals == item.npos ? "" : item.substr(equals + 1));
  }
  return pairs;
}

// Its accelerators in the catalog's words; empty: it has none, or nobody knows them.
std::string known_accelerators(const std::string& machine, const std::string& accelerator, const Draft& draft) {
  CatalogTables tables = CatalogTables::read().value();
  const auto& nodes = draft.asked().nodes;
  return accelerators_of(tables.machines().value(), machine, accelerator, nodes ? nodes->value.most : 1);
}

using Seen = std::vector<SeenFlag>;

const SeenFlag* last(const Seen& seen, std::string_view name) {
  const auto found = std::find_if(seen.rbegin(), seen.rend(), [&](const SeenFlag& f) { return f.name == name; });
  return found == seen.rend() ? nullptr : &*found;
}

// A line that makes machines.
class Machines {
 public:
  Machines(Create create, const Seen& seen, Draft& draft) : create_(create), seen_(seen), draft_(draft) {}

  void read(std::span<const ShellWord> names, const std::string& from) {
    draft_.set("gcloud.create", std::string(names_[static_cast<std::size_t>(create_)]), from);
    if (names.size() > 1)
      draft_.wrong(error(ErrorKind::unsupported, "{}: it makes several; a workload says one", origin(from))
                       .hinted("paste the line with one name"));
    for (const ShellWord& name : names) {
      if (name.expands) {
        draft_.left_out("the name " + name.raw, "it is known only where it runs: gcloud.name");
        continue;
      }
      draft_.set("gcloud.name", name.text, from);
      if (create_ == Create::cluster) draft_.set("gke.cluster", name.text, from);
    }
    nodes();
    for (const SeenFlag& flag : seen_) {
      if (flag.expands)
        draft_.left_out(flag.value.from, "its value is known only where it runs");
      else
        one(flag);
    }
    for (const auto& [name, said] : options_) draft_.set_entry("gcloud.options", name, said.text, said.from);
    terms();
    const std::string accelerators = known_accelerators(machine_, accelerator_, draft_);
    if (!accelerators.empty()) draft_.set("resources.accelerators", accelerators, machine_from_);
  }

 private:
  static constexpr std::string_view names_[] = {"nothing", "instances", "tpu-vm", "node-pool", "cluster"};
  bool of_gke() const { return create_ == Create::node_pool || create_ == Create::cluster; }

  void keep(const SeenFlag& flag) {
    Value& said = options_[std::string(flag.name)];
    said.text += (said.from.empty() ? "" : "\n") + flag.value.text;
    said.from += (said.from.empty() ? "" : " ") + flag.value.from;
  }

  void one(const SeenFlag& flag) {
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
    if (flag.why == kMachines || flag.name == "service-account" || flag.name == "network") return keep(flag);
    draft_.left_out(from, std::string(flag.why));
  }

  void accelerator(const Value& value) {  // type=nvidia-tesla-a100,count=4, or v4-8
    std::string plain;
    for (const auto& [name, said] : map_of(value.text)) {
      plain += (plain.empty() ? "" : ",") + name + (said.empty() ? "" : "=" + said);
      if (name != "count") continue;
      if (const auto n = count_of(draft_, {said, value.from}))
        draft_.ask(&AskedResources::gpus_per_node, *n, value.from);
    }
    if (plain.starts_with("type=") && plain.find("count=") == plain.npos)
      draft_.ask(&AskedResources::gpus_per_node, std::int64_t{1}, value.from);
    accelerator_ = plain;
    machine_from_ += (machine_from_.empty() ? "" : " ") + value.from;
    draft_.set("gcloud.accelerator", plain, value.from);
  }

  // --num-nodes=2 --min-nodes=1 --max-nodes=4: as many as it may have. What a range cannot say stays an option.
  void nodes() {
    const SeenFlag *fixed = last(seen_, "num-nodes"), *least = last(seen_, "min-nodes"),
                   *most = last(seen_, "max-nodes");
    for (const SeenFlag* flag : {fixed, least, most})
      if (flag != nullptr && flag->expands) return;
    const std::int64_t start = fixed == nullptr ? -1 : count_of(draft_, fixed->value, 0).value_or(-1);
    if (most == nullptr) {
      if (least != nullptr) keep(*least);
      if (start >= 1) draft_.ask(&AskedResources::nodes, CountRange{start, start}, fixed->value.from);
      if (start == 0 || start == 1) keep(*fixed);
      return;
    }
    const std::string from = (least == nullptr ? "" : least->value.from + " ") + most->value.from;
    const auto end = count_of(draft_, most->value);
    const auto begin = least == nullptr ? std::optional<std::int64_t>(0) : count_of(draft_, least->value, 0);
    if (!end || !begin) return;
    if (*begin > *end)
      return draft_.wrong(error(ErrorKind::invalid, "{}: no range", from).hinted("--min-nodes below --max-nodes"));
    if (start >= 0 && (start > *end || start < *begin))
      return draft_.wrong(error(ErrorKind::invalid, "{}: it is outside of {}", fixed->value.from, from)
                              .hinted(fmt::format("--num-nodes from {} to {}", *begin, *end)));
    draft_.ask(&AskedResources::nodes, CountRange{std::max<std::int64_t>(1, *begin), *end}, from);
    if (fixed != nullptr) keep(*fixed);
    if (*begin == 0 && least != nullptr) keep(*least);
    if (*begin == *end || *end == 1)  // no range of a workload's
      for (const char* name : {"enable-autoscaling", "min-nodes", "max-nodes"})
        if (const SeenFlag* flag = last(seen_, name)) options_[name] = flag->value;
  }

  void terms() {
    const auto set = [&](const char* terms, const SeenFlag* flag) {
      draft_.set("resources.provisioning", std::string(terms), flag->value.from);
    };
    if (const SeenFlag* flag = last(seen_, "preemptible")) {
      set("spot", flag);
      draft_.set_entry("gcloud.options", "preemptible", "", flag->value.from);
    }
    if (const SeenFlag* flag = last(seen_, "spot")) set("spot", flag);
    if (const SeenFlag* flag = last(seen_, "flex-start")) set("flex-start", flag);
    if (const SeenFlag* flag = last(seen_, "provisioning-model"); flag != nullptr && !flag->expands) {
      std::string model = flag->value.text;
      std::ranges::transform(model, model.begin(),
                             [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
      if (model == "SPOT" || model == "STANDARD" || model == "FLEX_START")
        set(model == "SPOT" ? "spot" : model == "STANDARD" ? "on-demand" : "flex-start", flag);
      else
        draft_.set_entry("gcloud.options", "provisioning-model", flag->value.text, flag->value.from);
    }
    const SeenFlag *name = last(seen_, "reservation"), *affinity = last(seen_, "reservation-affinity");
    if (name != nullptr && !name->expands && affinity != nullptr && affinity->value.text == "specific") {
      set("reserved", affinity);
      return draft_.set("resources.reservation", name->value.text, name->value.from);
    }
    for (const SeenFlag* flag : {name, affinity})
      if (flag != nullptr && !flag->expands)
        draft_.set_entry("gcloud.options", std::string(flag->name), flag->value.text, flag->value.from);
  }

  Create create_;
  const Seen& seen_;
  Draft& draft_;
  std::map<std::string, Value> options_;
  std::string machine_, accelerator_, machine_from_;
};

// Pools of a job that differ in their number alone are nodes of one workload.
class CustomJob {
 public:
  CustomJob(const Seen& seen, Draft& draft) : seen_(seen), draft_(draft) {}

  void read(const std::string& line) {
    for (const SeenFlag& flag : seen_) {
      const auto& [text, from] = flag.value;
      if (flag.expands)
        draft_.left_out(from, "its value is known only where it runs");
      else if (flag.name == "display-name")
        draft_.set("name", text, from);
      else if (flag.name == "timeout")  // seconds, or as 2h
        draft_.set("resources.longest", text.find_first_not_of("0123456789") == text.npos ? text + "s" : text, from);
      else if (flag.name == "worker-pool-spec")
        pool(flag.value);
      else if (flag.name == "command")
        add(command_, text);
      else if (flag.name == "args")
        add(arguments_, text);
      else
        draft_.left_out(from, std::string(flag.why));
    }
    if (nodes_ > 0) draft_.ask(&AskedResources::nodes, CountRange{nodes_, nodes_}, "--worker-pool-spec replica-count");
    const std::string accelerators = known_accelerators(machine_, accelerator_, draft_);
    if (!accelerators.empty()) draft_.set("resources.accelerators", accelerators, "--worker-pool-spec");
    if (command_.empty() && arguments_.empty()) return draft_.left_out(line, "it starts no program");
    if (command_.empty()) {
      draft_.wrong(
          error(ErrorKind::unsupported, "--args: they are those of the image's own program, which is not known here")
              .hinted("say --command, too"));
      return;
    }
    start();
  }

 private:
  static void add(std::vector<std::string>& to, std::string_view list) {
    for (std::string& item : list_of(list)) to.push_back(std::move(item));
  }

  void start() {
    // One item with blanks is a line that somebody typed; Vertex AI would look for a program of that whole name.
    std::string script;
    const bool line = command_.size() == 1 && command_[0].find(' ') != std::string::npos;
    for (const std::string& word : command_)
      script += (script.empty() ? "" : " ") + (line ? word : plain_word(word).raw);
    for (const std::string& word : arguments_) script += " " + plain_word(word).raw;
    read_script(script, "gcloud --command", draft_);
  }

  void pool(const Value& value) {
    std::string same;
    std::int64_t replicas = 1;
    std::string count;
    for (const auto& [name, said] : map_of(value.text)) {
      const std::string from = "--worker-pool-spec " + name + "=" + said;
      if (name == "replica-count") {
        replicas = count_of(draft_, {said, from}).value_or(1);
        continue;
      }
      same += name + "=" + said + "\n";
      if (name == "accelerator-count") {
        count = said;
        if (const auto n = count_of(draft_, {said, from})) draft_.ask(&AskedResources::gpus_per_node, *n, from);
      } else if (name == "container-image-uri" || name == "executor-image-uri") {
        draft_.set("image", said, from);
      } else if (name == "machine-type") {
        machine_ = said;
      } else if (name == "accelerator-type") {
        accelerator_ = said;
      } else if (name == "script" || name == "python-module") {
        command_ = name == "script" ? std::vector<std::string>{"python3", said}
                                    : std::vector<std::string>{"python3", "-m", said};
      } else if (name == "local-package-path" || name == "requirements" || name == "extra-packages") {
        draft_.left_out(from, "the image has the files: systole render --on docker");
      } else {
        draft_.left_out(from, "no key of a workload says it");
      }
    }
    if (!accelerator_.empty() && accelerator_.find("type=") == accelerator_.npos)
      accelerator_ = "type=" + accelerator_ + ",count=" + (count.empty() ? "1" : count);
    if (nodes_ > 0 && same != pool_) {
      draft_.wrong(error(ErrorKind::unsupported, "{}: another kind of machine; nodes of a workload are all alike",
                         origin(value.from))
                       .hinted("import each pool on its own"));
      return;
    }
    pool_ = same;
    nodes_ = std::min<std::int64_t>(nodes_ + replicas, 1'000'000'000);
  }

  const Seen& seen_;
  Draft& draft_;
  std::vector<std::string> command_, arguments_;
  std::string machine_, accelerator_, pool_;
  std::int64_t nodes_ = 0;
};

}  // namespace

bool makes_machines(std::span<const ShellWord> words) {
  std::string command;
  for (const ShellWord& word : words) {
    if (word.text.starts_with('-')) break;
    if (word.text != "alpha" && word.text != "beta") command += (command.empty() ? "" : " ") + word.text;
  }
  return std::ranges::any_of(kPlaces, [&](const Place& p) {
    return p.create != Create::nothing && p.create != Create::cluster && command.starts_with(p.command);
  });
}

void read_gcloud(std::span<const ShellWord> words, bool alone, Draft& draft) {
  std::string command, line = "gcloud";
  std::size_t early = 0;
  bool path = true;
  for (const ShellWord& word : words) {
    line += " " + word.raw;
    path = path && !word.text.starts_with('-');
    if (path && command.empty() && (word.text == "alpha" || word.text == "beta"))
      ++early;
    else if (path)
      command += (command.empty() ? "" : " ") + word.text;
  }
  const auto place = std::ranges::find_if(kPlaces, [&](const Place& p) { return command.starts_with(p.command); });
  if (!place->why.empty()) return draft.left_out(line, std::string(place->why));
  if (place->create == Create::cluster && !alone) return draft.left_out(line, std::string(kGke));
  Seen seen;
  const std::vector<ShellWord> rest =
      read_flags(words, {kFlags}, {.program = "gcloud", .words_end_them = false, .seen = &seen, .tells = false}, draft);
  const auto of_path = static_cast<std::size_t>(std::ranges::count(place->command, ' ')) + 1 + early;
  if (place->create != Create::nothing) {
    const std::span<const ShellWord> names = std::span(rest).subspan(std::min(of_path, rest.size()));
    return Machines(place->create, seen, draft).read(names, "gcloud " + std::string(place->command));
  }
  if (place->command.starts_with("ai ")) return CustomJob(seen, draft).read(line);
  // A shell on a machine: what it is told to run.
  const SeenFlag* program = last(seen, "command");
  for (const SeenFlag& flag : seen)
    if (&flag != program) draft.left_out(flag.value.from, std::string(flag.why));
  if (program == nullptr) return draft.left_out(line, "it starts no program");
  read_script(program->value.text, "gcloud --command", draft);
}

}  // namespace systole
