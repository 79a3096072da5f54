// Lines of gcloud: those that make the machines of a job say its resources, one starts a program, others are told.
#include <algorithm>

#include "operate/import/flags.h"
#include "operate/import/launchers.h"
#include "operate/import/script.h"

namespace systole {
namespace {

using Value = FlagValue;

constexpr Flag::Takes kNothing = Flag::Takes::nothing, kValue = Flag::Takes::value, kPerhaps = Flag::Takes::perhaps;
constexpr std::string_view kGke = "systole render --on gke writes clusters and node pools";
constexpr std::string_view kMachines = "machines are not made here: systole plan --on prices them";
constexpr std::string_view kWhere = "where is chosen by systole plan --on, and by who makes the machines";
constexpr std::string_view kImage = "machines bring their own system; image is a container's";
constexpr std::string_view kShown = "it is how gcloud shows things";
constexpr std::string_view kBudget = "a budget is an account's; systole runs shows what a run has cost";
constexpr std::string_view kStorage = "claims mounts what is there";

void gpus(Draft& draft, const Value& value) {  // type=nvidia-tesla-a100,count=4
  for (const auto& [name, said] : pairs_of(value.text)) {
    if (name == "count") {
      if (const auto n = count_of(draft, {said, value.from})) draft.ask(&AskedResources::gpus_per_node, *n, value.from);
    } else {
      draft.left_out(value.from, fmt::format("{}: {}", name, kMachines));
    }
  }
}

void pool(Draft& draft, const Value& value) {  // machine-type=...,replica-count=1,...
  for (const auto& [name, said] : pairs_of(value.text)) {
    const std::string from = "--worker-pool-spec " + name + "=" + said;
    if (name == "replica-count") {
      if (const auto n = count_of(draft, {said, from})) draft.ask(&AskedResources::nodes, CountRange{*n, *n}, from);
    } else if (name == "accelerator-count") {
      if (const auto n = count_of(draft, {said, from})) draft.ask(&AskedResources::gpus_per_node, *n, from);
    } else if (name == "container-image-uri") {
      draft.set("image", said, from);
    } else {
      draft.left_out(from, std::string(name == "machine-type" || name == "accelerator-type"
                                           ? kMachines
                                           : std::string_view("no key of a workload says it")));
    }
  }
}

void timeout(Draft& draft, const Value& value) {  // seconds, or as 2h
  const std::string text =
      value.text.find_first_not_of("0123456789") == value.text.npos ? value.text + "s" : value.text;
  draft.set("resources.longest", text, value.from);
}

// Read together, below.
constexpr Flag kFlags[] = {
    {"accelerator", '\0', kValue, gpus},
    {"worker-pool-spec", '\0', kValue, pool},
    {"display-name", '\0', kValue, [](Draft& d, const Value& v) { d.set("name", v.text, v.from); }},
    {"timeout", '\0', kValue, timeout},
    {"num-nodes", '\0', kValue, nullptr, ""},
    {"min-nodes", '\0', kValue, nullptr, ""},
    {"max-nodes", '\0', kValue, nullptr, ""},
    {"enable-autoscaling", '\0', kNothing, nullptr, ""},
    {"command", '\0', kValue, nullptr, ""},
    {"args", '\0', kValue, nullptr, ""},
    {"zone", '\0', kValue, nullptr, kWhere},
    {"region", '\0', kValue, nullptr, kWhere},
    {"location", '\0', kValue, nullptr, kWhere},
    {"node-locations", '\0', kValue, nullptr, kWhere},
    {"project", '\0', kValue, nullptr, kWhere},
    {"machine-type", '\0', kValue, nullptr, kMachines},
    {"accelerator-type", '\0', kValue, nullptr, kMachines},
    {"topology", '\0', kValue, nullptr, kMachines},
    {"boot-disk-size", '\0', kValue, nullptr, kMachines},
    {"maintenance-policy", '\0', kValue, nullptr, kMachines},
    {"metadata", '\0', kValue, nullptr, kMachines},
    {"scopes", '\0', kValue, nullptr, kMachines},
    {"service-account", '\0', kValue, nullptr, "kubernetes.service_account says it for pods"},
    {"provisioning-model", '\0', kValue, nullptr, kMachines},
    {"instance-termination-action", '\0', kValue, nullptr, kMachines},
    {"preemptible", '\0', kNothing, nullptr, kMachines},
    {"spot", '\0', kNothing, nullptr, kMachines},
    {"network", '\0', kValue, nullptr, kMachines},
    {"subnet", '\0', kValue, nullptr, kMachines},
    {"image-family", '\0', kValue, nullptr, kImage},
    {"image-project", '\0', kValue, nullptr, kImage},
    {"image", '\0', kValue, nullptr, kImage},
    {"version", '\0', kValue, nullptr, kImage},
    {"worker", '\0', kValue, nullptr, "the agent starts ranks on all nodes"},
    {"cluster", '\0', kValue, nullptr, kGke},
    {"limit", '\0', kValue, nullptr, kShown},
    {"format", '\0', kValue, nullptr, kShown},
    {"filter", '\0', kValue, nullptr, kShown},
    {"quiet", 'q', kNothing, nullptr, kShown},
    {"billing-account", '\0', kValue, nullptr, kBudget},
    {"budget-amount", '\0', kValue, nullptr, kBudget},
    {"threshold-rule", '\0', kValue, nullptr, kBudget},
    {"file-share", '\0', kValue, nullptr, kStorage},
    {"tier", '\0', kValue, nullptr, kStorage},
    {"async", '\0', kPerhaps, nullptr, kShown},
};

struct Place {
  std::string_view command, why;  // "" why: its flags are the job's
};
constexpr Place kPlaces[] = {
    {"compute instances create", ""},    {"compute tpus tpu-vm create", ""},       {"compute ssh", ""},
    {"compute tpus tpu-vm ssh", ""},     {"container node-pools create", ""},      {"ai custom-jobs create", ""},
    {"container clusters create", kGke}, {"filestore instances create", kStorage}, {"billing budgets", kBudget},
    {"", "it starts no program"},
};

std::string value_of(std::span<const ShellWord> words, std::string_view name) {
  const std::string flag = "--" + std::string(name);
  for (std::size_t w = 0; w < words.size(); ++w) {
    if (words[w].text == flag && w + 1 < words.size()) return words[w + 1].text;
    if (words[w].text.starts_with(flag + "=")) return words[w].text.substr(flag.size() + 1);
  }
  return "";
}

// --num-nodes=2 --min-nodes=1 --max-nodes=4: as many as it may have.
void nodes(std::span<const ShellWord> words, Draft& draft) {
  const std::string fixed = value_of(words, "num-nodes"), least = value_of(words, "min-nodes"),
                    most = value_of(words, "max-nodes");
  if (most.empty()) {
    if (fixed.empty()) return;
    const Value value{fixed, "--num-nodes=" + fixed};
    if (const auto n = count_of(draft, value)) draft.ask(&AskedResources::nodes, CountRange{*n, *n}, value.from);
    return;
  }
  const std::string from = fmt::format("--min-nodes={} --max-nodes={}", least, most);
  const auto last = count_of(draft, {most, from});
  const auto first = least.empty() ? std::optional<std::int64_t>(0) : count_of(draft, {least, from}, 0);
  if (!last || !first) return;
  if (*first > *last)
    return draft.wrong(error(ErrorKind::invalid, "{}: no range", from).hinted("--min-nodes below --max-nodes"));
  draft.ask(&AskedResources::nodes, CountRange{std::max<std::int64_t>(1, *first), *last}, from);
}

}  // namespace

void read_gcloud(std::span<const ShellWord> words, Draft& draft) {
  std::string command, line = "gcloud";
  bool path = true;
  for (const ShellWord& word : words) {
    line += " " + word.raw;
    path = path && !word.text.starts_with('-');
    if (path) command += (command.empty() ? "" : " ") + word.text;
  }
  for (const std::string_view early : {"alpha ", "beta "})
    if (command.starts_with(early)) command = command.substr(early.size());
  const auto place = std::ranges::find_if(kPlaces, [&](const Place& p) { return command.starts_with(p.command); });
  if (!place->why.empty()) return draft.left_out(line, std::string(place->why));
  read_flags(words, {kFlags}, {.program = "gcloud", .words_end_them = false}, draft);
  nodes(words, draft);
  const std::string program = value_of(words, "command"), arguments = value_of(words, "args");
  if (program.empty()) {
    draft.left_out(line, "it starts no program; what it says of machines is in resources");
    return;
  }
  std::string script = program;
  for (const auto& [name, said] : pairs_of(arguments))  // --args='--epochs=10,--batch-size=64'
    script += " " + plain_word(said.empty() ? name : name + "=" + said).raw;
  read_script(script, "gcloud --command", draft);
}

}  // namespace systole
