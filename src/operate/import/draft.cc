#include "operate/import/draft.h"

#include <algorithm>
#include <limits>

#include "ground/base/errors.h"
#include "ground/base/sourced_yaml.h"
#include "operate/render/quote.h"

namespace systole {
namespace {

// Conventional order of keys in a workload.
constexpr std::string_view kOrder[] = {"systole", "name",       "workload", "command",   "model",  "data",
                                       "train",   "mesh",       "image",    "resources", "ranks",  "checkpoint",
                                       "resume",  "env",        "claims",   "volumes",   "folder", "labels",
                                       "slurm",   "kubernetes", "gke",      "gcloud",    "ssh"};

void set_path(Node& node, const std::string& path, Node value) {
  const std::size_t dot = path.find('.');
  if (dot == path.npos) {
    node.set(path, std::move(value));
    return;
  }
  const std::string head = path.substr(0, dot);
  const Node* there = node.find(head);
  Node child = there != nullptr && there->is_map() ? *there : Node::map();
  set_path(child, path.substr(dot + 1), std::move(value));
  node.set(head, std::move(child));
}

Node placed(Node value, const std::string& from) {
  value.set_place({std::make_shared<const std::string>(origin(from)), 0, 0});
  return value;
}

void add_once(std::vector<LeftOut>& list, std::string what, std::string why) {
  what = origin(what);
  const auto same = [&](const LeftOut& other) { return other.what == what && other.why == why; };
  if (std::ranges::none_of(list, same)) list.push_back({std::move(what), std::move(why)});
}

// Saturates: a pasted line may have counts of any size.
std::int64_t product(std::int64_t a, std::int64_t b) {
  std::int64_t all = 0;
  return __builtin_mul_overflow(a, b, &all) ? std::numeric_limits<std::int64_t>::max() : all;
}

}  // namespace

std::string origin(std::string_view text) {
  constexpr std::size_t kMost = 110;
  std::string line = comment_text(text.substr(0, kMost));
  if (text.size() > kMost) line += "...";
  return line;
}

bool is_agents_variable(std::string_view name) {
  constexpr std::string_view kAgents[] = {"RANK",
                                          "WORLD_SIZE",
                                          "LOCAL_RANK",
                                          "LOCAL_WORLD_SIZE",
                                          "GROUP_RANK",
                                          "MASTER_ADDR",
                                          "MASTER_PORT",
                                          "CUDA_VISIBLE_DEVICES",
                                          "NODE_RANK",
                                          "NNODES",
                                          "NPROC_PER_NODE",
                                          "JAX_COORDINATOR_ADDRESS",
                                          "JAX_NUM_PROCESSES",
                                          "JAX_PROCESS_ID"};
  return std::ranges::find(kAgents, name) != std::end(kAgents) || name.starts_with("SYSTOLE_");
}

Node bytes_node(Bytes bytes) {
  for (const auto& [unit, name] : {std::pair(kGiB, "GiB"), std::pair(kGB, "GB"), std::pair(kMiB, "MiB"),
                                   std::pair(kMB, "MB"), std::pair(kKiB, "KiB")})
    if (bytes.count() % unit.count() == 0) return Node(fmt::format("{}{}", bytes.count() / unit.count(), name));
  return Node(bytes.count());
}

void Draft::begin_with(const Workload& workload, Node node) {
  begun_ = true;
  begun_with_ = workload;
  base_ = std::move(node);
}

void Draft::place_errors(std::size_t from, const Where& where) {
  for (std::size_t e = from; e < errors_.size(); ++e)
    if (errors_[e].where.line == 0) errors_[e].where = where;
}

void Draft::disagree(const std::string& one, const std::string& other) {
  wrong(error(ErrorKind::invalid, "{} and {} do not agree", origin(one), origin(other))
            .at({file_})
            .hinted("take one of them out"));
}

void Draft::set(const std::string& path, Node value, const std::string& from) {
  const auto there = values_.find(path);
  if (there != values_.end() && !(there->second == value)) return disagree(*there->second.place().file, from);
  values_[path] = placed(std::move(value), from);
}

void Draft::propose(const std::string& path, Node value, const std::string& from) {
  if (!values_.contains(path) && !begun_) values_[path] = placed(std::move(value), from);
}

void Draft::set_entry(const std::string& path, const std::string& key, const std::string& value,
                      const std::string& from) {
  std::map<std::string, Node>& entries = entries_[path];
  const auto there = entries.find(key);
  if (there != entries.end() && there->second.text() != value) return disagree(*there->second.place().file, from);
  entries[key] = placed(Node(value), from);
}

void Draft::set_volume(const std::string& path, const std::vector<VolumeKey>& keys) {
  Node volume = Node::map();
  for (const VolumeKey& each : keys) volume.set(each.key, placed(each.value, each.from));
  std::map<std::string, Node>& volumes = entries_["volumes"];
  const auto there = volumes.find(path);
  if (there != volumes.end() && !(there->second == volume)) return disagree(path, keys.front().from);
  volumes[path] = std::move(volume);
}

void Draft::variable(const std::string& name, const std::string& value, const std::string& from) {
  if (is_agents_variable(name)) return left_out(from, "the agent sets what ranks find each other by");
  set_entry("env", name, value, from);
}

void Draft::notice(std::int64_t seconds, const std::string& from) {
  if (static_cast<double>(seconds) != RanksSpec::kNotice.count() || begun_with_.ranks.notice)
    set("ranks.notice", fmt::format("{}s", seconds), from);
}

void Draft::left_out(std::string what, std::string why) { add_once(left_out_, std::move(what), std::move(why)); }
void Draft::note(std::string what, std::string why) { add_once(notes_, std::move(what), std::move(why)); }

std::optional<std::int64_t> Draft::gpus_per_node() {
  const RequestedResources& a = asked_;
  const std::int64_t nodes = a.nodes ? a.nodes->value.most : 1;
  const std::int64_t tasks = a.tasks_per_node ? a.tasks_per_node->value : 1;
  std::optional<Said<std::int64_t>> gpus = a.gpus_per_node;
  if (!gpus && a.gpus_per_task)
    gpus = Said<std::int64_t>{product(a.gpus_per_task->value, tasks), a.gpus_per_task->from};
  if (!gpus && a.gpus) {
    if (a.gpus->value % nodes != 0 || (a.nodes && a.nodes->value.elastic())) {
      wrong(error(ErrorKind::invalid, "{}: {} GPUs are not as many on each of {} nodes", a.gpus->from, a.gpus->value,
                  nodes)
                .hinted("say them by node: --gpus-per-node"));
      return std::nullopt;
    }
    gpus = Said<std::int64_t>{a.gpus->value / nodes, a.gpus->from};
  }
  if (!gpus) return begun_with_.resources.gpus_per_node;
  if (gpus->value > 0) set("resources.gpus_per_node", gpus->value, gpus->from);
  return gpus->value;
}

void Draft::resolve_ranks(std::int64_t ranks) {
  const RequestedResources& a = asked_;
  std::optional<Said<std::int64_t>> cpus;  // per node, in thousandths
  const std::int64_t tasks = a.tasks_per_node ? a.tasks_per_node->value : 1;
  if (a.millicpus_per_node) cpus = a.millicpus_per_node;
  if (a.cpus_per_task) cpus = {product(a.cpus_per_task->value, tasks * 1000), a.cpus_per_task->from};
  if (a.cpus_per_gpu) {
    cpus = {product(a.cpus_per_gpu->value, product(1000, gpus_per_node().value_or(1))), a.cpus_per_gpu->from};
  }
  if (cpus && cpus->value > 0) {
    const std::int64_t threads = std::max<std::int64_t>(1, cpus->value / (1000 * ranks));
    set("resources.threads", threads, cpus->from + (ranks > 1 ? fmt::format(", for {} ranks", ranks) : ""));
    if (product(threads, ranks * 1000) != cpus->value)
      note(cpus->from, fmt::format("{} for {} ranks do not come out even: {} each",
                                   Node(static_cast<double>(cpus->value) / 1000).text(), ranks, threads));
  }
  std::optional<Said<Bytes>> memory = a.memory_per_node;
  if (!memory && a.memory_per_cpu && cpus)
    memory = {Bytes(product(a.memory_per_cpu->value.count(), std::max<std::int64_t>(1, cpus->value / 1000))),
              a.memory_per_cpu->from};
  if (!memory && a.memory_per_gpu)
    memory = {Bytes(product(a.memory_per_gpu->value.count(), gpus_per_node().value_or(1))), a.memory_per_gpu->from};
  if (memory && memory->value.count() > 0) set("resources.memory", bytes_node(memory->value), memory->from);
  if (a.memory_per_cpu && !memory) left_out(a.memory_per_cpu->from, "how many CPUs a node gives is not said");
}

// Total counts without a number of nodes let Slurm take as many nodes as needed. With counts per node that number can
// be computed; otherwise it is unknown.
void Draft::resolve_nodes() {
  RequestedResources& a = asked_;
  if (begun_) return;
  if (!a.tasks && a.gpus && a.gpus_per_task && a.gpus_per_task->value > 0)
    a.tasks = {a.gpus->value / a.gpus_per_task->value, a.gpus->from};
  if (a.nodes) return;
  const auto divide = [&](const Said<std::int64_t>& all, const Said<std::int64_t>& each) {
    if (each.value > 0 && all.value % each.value == 0)
      a.nodes = {CountRange{all.value / each.value, all.value / each.value}, all.from + " " + each.from};
    else if (all.value > each.value)
      wrong(error(ErrorKind::invalid, "{} and {} are not as many on each node", all.from, each.from)
                .hinted("say the nodes: --nodes"));
  };
  if (a.tasks && a.tasks_per_node) return divide(*a.tasks, *a.tasks_per_node);
  if (a.gpus && a.gpus_per_node) return divide(*a.gpus, *a.gpus_per_node);
  constexpr std::string_view kUnsaid = "not said: Slurm takes as many as it needs";
  if (a.gpus && a.gpus->value > 1)
    left_out("nodes of " + a.gpus->from, fmt::format("{}; here it is one: resources.nodes", kUnsaid));
  if (!a.tasks || a.tasks->value <= 1 || a.tasks_per_node) return;
  if (!a.gpus_per_node || a.tasks->value <= std::max<std::int64_t>(1, a.gpus_per_node->value)) {
    left_out("nodes of " + a.tasks->from, fmt::format("{}; here it is one: resources.nodes", kUnsaid));
    return;
  }
  left_out(a.tasks->from,
           fmt::format("on how many nodes is {}: resources.nodes, and resources.ranks_per_node where ranks are more "
                       "than the GPUs",
                       kUnsaid));
  a.tasks.reset();
}

void Draft::resolve() {
  RequestedResources& a = asked_;
  resolve_nodes();
  if (a.tasks && !a.tasks_per_node) {
    const std::int64_t nodes = a.nodes ? a.nodes->value.most : 1;
    if (a.tasks->value % nodes != 0 || (a.nodes && a.nodes->value.elastic())) {
      wrong(error(ErrorKind::invalid, "{}: {} tasks are not as many on each of {} nodes", a.tasks->from, a.tasks->value,
                  nodes)
                .hinted("say them by node: --ntasks-per-node"));
    } else {
      a.tasks_per_node = {a.tasks->value / nodes, a.tasks->from};
    }
  }
  if (a.nodes && (begun_with_.resources.nodes || !(a.nodes->value == CountRange{}))) {
    const CountRange& n = a.nodes->value;
    set("resources.nodes", n.elastic() ? Node(fmt::format("{}:{}", n.least, n.most)) : Node(n.most), a.nodes->from);
  }
  const std::optional<std::int64_t> gpus = gpus_per_node();
  const bool model = begun_ && begun_with_.command.empty();
  std::int64_t ranks = begun_with_.resources.ranks_per_node.value_or(model ? 1 : gpus.value_or(1));
  if (!begun_) {  // otherwise the agents are its tasks
    std::optional<Said<std::int64_t>> said = a.launched_per_node;
    if (!said) {
      said = a.tasks_per_node;
    } else if (a.tasks_per_node && a.tasks_per_node->value > 1) {
      wrong(error(ErrorKind::invalid, "{} starts {} launchers a node, of which each starts {} ranks ({})",
                  a.tasks_per_node->from, a.tasks_per_node->value, said->value, said->from)
                .hinted("one launcher a node: --ntasks-per-node=1"));
    }
    if (said && said->value != std::max<std::int64_t>(1, gpus.value_or(1)))
      set("resources.ranks_per_node", said->value, said->from);
    if (said) ranks = said->value;
    if (said && said->value > 1 && !gpus)
      note(said->from, fmt::format("whether each of {} ranks has a GPU is not said; where they do: "
                                   "resources.gpus_per_node: {}",
                                   said->value, said->value));
  }
  resolve_ranks(std::max<std::int64_t>(1, ranks));
}

Node Draft::tree() const {
  Node all = begun_ ? base_ : Node::map({{"systole", 1}});
  for (const auto& [path, value] : values_) set_path(all, path, value);
  for (const auto& [path, entries] : entries_)
    for (const auto& [key, value] : entries) {
      const Node* there = all.find(path);
      Node map = there != nullptr ? *there : Node::map();
      map.set(key, value);
      all.set(path, std::move(map));
    }
  Node ordered = Node::map();
  for (const std::string_view key : kOrder)
    if (const Node* value = all.find(key)) ordered.set(key, *value);
  for (const Node::Entry& entry : all.entries())
    if (ordered.find(entry.key) == nullptr) ordered.set(entry.key, entry.value);
  return ordered;
}

// A summary for input that only says where to run.
std::string Draft::understood() const {
  std::string text;
  for (const auto& [path, value] : values_)
    if (path != "name" && value.is_scalar())
      text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", path, value.text());
  return text;
}

Result<Imported> Draft::finish(std::string_view kind) {
  resolve();
  const bool machines = !begun_ && !values_.contains("command") && values_.contains("gcloud.create");
  if (machines) {
    set("workload", std::string("machines"), "nothing of it starts a program");
    if (const auto name = values_.find("gcloud.name"); name != values_.end())
      propose("name", name->second, "gcloud.name");
  }
  if (errors_.empty() && !begun_ && !machines && !values_.contains("command")) {
    const std::string said = understood();
    wrong(error(ErrorKind::invalid, "nothing of it starts a program{}", said.empty() ? "" : "; it says " + said)
              .at({file_})
              .hinted("paste the line that starts it, too, such as: torchrun --nproc-per-node=8 train.py"));
  }
  if (!errors_.empty()) return together(std::move(errors_));
  propose("name", "imported", "nobody names it");
  Imported made;
  made.yaml =
      fmt::format("# Of {} by `systole import`: behind each value stands where it comes from.\n", comment_text(kind));
  if (machines) {
    made.missing =
        "a program: command: [python3, train.py] in the place of workload: machines, or model, data and train";
    made.yaml += "# Missing: " + made.missing + "\n";
  }
  if (!left_out_.empty()) made.yaml += "# Not carried over:\n";
  for (const LeftOut& out : left_out_) made.yaml += fmt::format("#   {}: {}\n", out.what, comment_text(out.why));
  if (!notes_.empty()) made.yaml += "# Carried over:\n";
  for (const LeftOut& note : notes_) made.yaml += fmt::format("#   {}: {}\n", note.what, comment_text(note.why));
  made.yaml += to_sourced_yaml(tree());
  made.left_out = std::move(left_out_);
  made.notes = std::move(notes_);
  const Result<Workload> read = read_workload(made.yaml, "the workload made of it");
  if (!read.ok()) return read.error();
  return made;
}

}  // namespace systole
