// Keys of where others start it: how many nodes, for how long, in which image and folder; and what single targets take.
#include <algorithm>

#include "describe/spec/schema.h"
#include "describe/spec/secret.h"
#include "describe/spec/ssh_host.h"

namespace systole {
namespace {

// Text of these characters alone, which is not shown where it is empty.
Codec word_codec(Field<std::string> at, std::string_view beside_letters, const char* expected) {
  Codec codec = text_codec(at);
  codec.type = expected;
  codec.read = [at, beside_letters, expected, read = codec.read](const Node& node, Workload& w) -> Status {
    TRY(read(node, w));
    const auto is_one = [beside_letters](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             beside_letters.find(c) != beside_letters.npos;
    };
    const std::string& text = at(w);
    const auto wrong = std::ranges::find_if_not(text, is_one);
    if (!text.empty() && wrong == text.end() && text[0] != '-') return {};
    return error(ErrorKind::invalid, "'{}' is no {}", text, expected)
        .at(node.where())
        .hinted(fmt::format("letters, digits and {}; no '-' in front", beside_letters));
  };
  codec.write = [at](Workload& w) { return at(w).empty() ? Node() : Node(at(w)); };
  return codec;
}

Codec optional_text_codec(Field<std::string> at) {
  Codec codec = text_codec(at);
  codec.write = [at](Workload& w) { return at(w).empty() ? Node() : Node(at(w)); };
  return codec;
}

// A choice that is not shown, and may not be written, where it is `unsaid`.
template <typename Enum>
Codec unsaid_choice_codec(Field<Enum> at, Enum unsaid, std::vector<std::pair<std::string, Enum>> values) {
  values.emplace(values.begin(), "auto", unsaid);
  Codec codec = choice_codec(at, std::move(values));
  codec.write = [at, unsaid, write = codec.write](Workload& w) { return at(w) == unsaid ? Node() : write(w); };
  return codec;
}

// Terms on which machines are had, of those that can be asked for with a job.
Codec terms_codec() {
  static constexpr Provisioning kTerms[] = {Provisioning::on_demand, Provisioning::spot, Provisioning::flex_start,
                                            Provisioning::reservation};
  Codec codec = named_codec(
      {"on-demand", "spot", "flex-start", "reserved"},
      [](Workload& w, std::size_t i) { w.resources.provisioning = kTerms[i]; },
      [](Workload& w) {
        const auto found = std::ranges::find(kTerms, w.resources.provisioning.value_or(kTerms[0]));
        return static_cast<std::size_t>(found - std::begin(kTerms));
      });
  codec.write = [write = codec.write](Workload& w) { return w.resources.provisioning ? write(w) : Node(); };
  return codec;
}

// A map of text whose names follow a rule, which says what is wrong with one or nothing.
Codec named_texts_codec(Field<std::map<std::string, std::string>> at, std::string (*wrong)(const std::string&),
                        const char* hint) {
  Codec codec = labels_codec(at);
  codec.read = [wrong, hint, read = codec.read](const Node& node, Workload& w) -> Status {
    TRY(read(node, w));
    for (const Node::Entry& entry : node.entries()) {
      const std::string said = wrong(entry.key);
      if (!said.empty()) return error(ErrorKind::invalid, "'{}' {}", entry.key, said).at(entry.where()).hinted(hint);
    }
    return {};
  };
  return codec;
}

std::string wrong_variable(const std::string& name) {
  if (!is_variable_name(name)) return "is no name of a variable";
  return is_variable_of_agent(name) ? "is set by the agent, for each rank" : "";
}

std::string wrong_path(const std::string& path) {
  if (!path.starts_with('/') || path == "/" || path.find(':') != path.npos) return "is no path of a container";
  return "";
}

std::string wrong_label(const std::string& name) {
  return name.empty() || name.size() > 317 ? "is no name of a label" : "";
}

void add_hardware_keys(std::vector<Key>& keys) {
  keys.push_back({.path = "resources.accelerators",
                  .codec = optional_text_codec(AT(resources.accelerators)),
                  .doc = "Accelerators of the catalog that it runs on: h100:16, a3-highgpu-8g:2, v5e:4x4, v5p-128.",
                  .more = "In the words of `systole plan --on`; nodes and what each has follow from it, and the kind "
                          "of node that is asked for. Without it, what the plan was made for.",
                  .optional = true});
  keys.push_back({.path = "resources.slices",
                  .codec = optional_count_codec(AT(resources.slices), 1, 10'000),
                  .doc = "TPU slices that work together over the data-centre network. Without it, 1.",
                  .optional = true,
                  .when = {"resources.accelerators", {}}});
  keys.push_back({.path = "resources.provisioning",
                  .codec = terms_codec(),
                  .doc = "On which terms its machines are had. Without it, on demand.",
                  .optional = true});
  keys.push_back({.path = "resources.reservation",
                  .codec = word_codec(AT(resources.reservation), "-./_", "name of a reservation"),
                  .doc = "The reservation that its machines are taken from.",
                  .optional = true,
                  .when = {"resources.provisioning", {"reserved"}}});
}

void add_kubernetes_keys(std::vector<Key>& keys) {
  using Kind = KubernetesSpec::Kind;
  using Launcher = KubernetesSpec::Launcher;
  keys.push_back(
      {.path = "kubernetes.kind",
       .codec = unsaid_choice_codec<Kind>(AT(kubernetes.kind), Kind::automatic,
                                          {{"job", Kind::job},
                                           {"jobset", Kind::jobset},
                                           {"pytorchjob", Kind::pytorchjob},
                                           {"jaxjob", Kind::jaxjob},
                                           {"trainjob", Kind::trainjob}}),
       .doc = "Which object runs it. auto: a JobSet for TPU slices of several hosts, else a Job.",
       .more = "A pytorchjob, jaxjob or trainjob needs Kubeflow's operators in the cluster, a jobset JobSet.",
       .optional = true});
  keys.push_back(
      {.path = "kubernetes.launcher",
       .codec = unsaid_choice_codec<Launcher>(
           AT(kubernetes.launcher), Launcher::automatic,
           {{"systole", Launcher::systole}, {"torchrun", Launcher::torchrun}, {"program", Launcher::program}}),
       .doc = "Who starts the ranks of a pod. auto: torchrun under Kubeflow (jaxjob: the program), else "
              "systole.",
       .more = "The image has to have it. torchrun and program are for a program of your own (command); "
               "program is started once a pod.",
       .optional = true});
  keys.push_back({.path = "kubernetes.namespace",
                  .codec = word_codec(AT(kubernetes.name_space), "-", "namespace"),
                  .doc = "Where its objects are made. Without it, default.",
                  .optional = true});
  keys.push_back({.path = "kubernetes.selector",
                  .codec = named_texts_codec(AT(kubernetes.selector), wrong_label, "NAME: VALUE, as nodes have it"),
                  .doc = "Labels that its nodes have.",
                  .optional = true});
  keys.push_back({.path = "kubernetes.service_account",
                  .codec = word_codec(AT(kubernetes.service_account), "-.", "name of a service account"),
                  .doc = "As whom it speaks to the cluster. Without it, as nobody: no token is mounted.",
                  .optional = true});
}

void add_slurm_keys(std::vector<Key>& keys) {
  constexpr std::string_view kBeside = "._/@:+,=-";
  const auto word = [&](const char* path, Field<std::string> at, const char* doc, const char* expected,
                        std::string_view beside) {
    keys.push_back({.path = path, .codec = word_codec(at, beside, expected), .doc = doc, .optional = true});
  };
  word("slurm.partition", AT(slurm.partition), "Partitions that may start it: a,b.", "name of a partition", kBeside);
  word("slurm.account", AT(slurm.account), "What its hours are charged to.", "name of an account", kBeside);
  word("slurm.qos", AT(slurm.qos), "Its quality of service.", "name of a quality of service", kBeside);
  word("slurm.constraint", AT(slurm.constraint), "Features that its nodes have: 'a100&ib'.", "constraint",
       "._/@:+,=-&|*()[]");
  word("slurm.reservation", AT(slurm.reservation), "Nodes set aside for it.", "name of a reservation", kBeside);
  word("slurm.gpu_type", AT(slurm.gpu_type), "Kind of its GPUs as the cluster calls it, beside gpus_per_node: a100.",
       "kind of GPU", "._-");
  keys.push_back({.path = "slurm.array",
                  .codec = optional_range_codec(AT(slurm.array), 0, 1'000'000),
                  .doc = "One run an index, 0:9 for ten of them, each with a seed of its own.",
                  .more = "The seed is train.seed and the index added up; each run has a folder of its own. A program "
                          "of your own finds the index in SLURM_ARRAY_TASK_ID.",
                  .optional = true});
  keys.push_back({.path = "slurm.at_once",
                  .codec = optional_count_codec(AT(slurm.at_once), 1, 1'000'000),
                  .doc = "Runs of slurm.array that may run at the same time. Without it, all.",
                  .optional = true,
                  .when = {"slurm.array", {}}});
}

Codec hosts_codec() {
  Codec codec = texts_codec(AT(ssh.hosts));
  codec.read = [read = codec.read](const Node& node, Workload& w) -> Status {
    TRY(read(node, w));
    const bool list = node.is_sequence();
    for (std::size_t i = 0; i < w.ssh.hosts.size(); ++i)
      if (!read_named_host(w.ssh.hosts[i]))
        return error(ErrorKind::invalid, "'{}' is no [USER@]HOST[:PORT]", w.ssh.hosts[i])
            .at(list ? node.items()[i].where() : node.where())
            .hinted("as in alice@node1:2222; HOST is how the machines reach each other, too");
    return {};
  };
  return codec;
}

}  // namespace

void add_cluster_keys(Schema& schema) {
  schema.sections.push_back({"slurm", "What Slurm takes besides.", {}, {}});
  schema.sections.push_back({"kubernetes", "What Kubernetes takes besides.", {}, {}});
  schema.sections.push_back({"ssh", "Plain machines, reached by ssh.", {}, {}});
  auto& keys = schema.keys;
  keys.push_back({.path = "resources.nodes",
                  .codec = optional_range_codec(AT(resources.nodes), 1, 100'000),
                  .doc = "Machines of a cluster; 2:8 where some may leave or join while it runs. Without it, 1.",
                  .optional = true});
  keys.push_back({.path = "resources.ranks_per_node",
                  .codec = optional_count_codec(AT(resources.ranks_per_node), 1, 1024),
                  .doc = "Ranks of each node. Without it one a GPU, else one.",
                  .optional = true});
  keys.push_back({.path = "resources.gpus_per_node",
                  .codec = optional_count_codec(AT(resources.gpus_per_node), 1, 1024),
                  .doc = "GPUs of each node of a cluster. Without it, none.",
                  .optional = true});
  keys.push_back({.path = "resources.longest",
                  .codec = optional_seconds_codec(AT(resources.longest)),
                  .doc = "How long a cluster lets it run at once; then it saves, ends, and is begun again.",
                  .optional = true});
  add_hardware_keys(keys);
  keys.push_back({.path = "ranks.retries",
                  .codec = optional_count_codec(AT(ranks.retries), 0, 1000),
                  .doc = "How often its cluster begins it again after a preemption or a loss. Without it, 10.",
                  .optional = true});
  keys.push_back({.path = "image",
                  .codec = optional_text_codec(AT(image)),
                  .doc = "Container image, NAME@sha256:DIGEST or NAME:TAG, that has systole and what it needs.",
                  .more = "A digest is one image for ever; what a tag names changes, and ':latest' is refused.",
                  .optional = true});
  keys.push_back(
      {.path = "env",
       .codec = without_secret_variables(named_texts_codec(AT(env), wrong_variable, "another name, or take it out")),
       .doc = "Environment of every rank, beside what it inherits.",
       .more = "Passwords, keys and tokens are refused here: they stand in secrets, by reference.",
       .optional = true});
  keys.push_back({.path = "claims",
                  .codec = named_texts_codec(AT(claims), wrong_path, "/data: NAME mounts the claim NAME there"),
                  .doc = "Persistent volume claims by the path where each is mounted: { /data: corpus }.",
                  .optional = true});
  add_volume_keys(schema);
  add_secrets_key(schema);
  keys.push_back({.path = "folder",
                  .codec = optional_text_codec(AT(folder)),
                  .doc = "Where a cluster's runs lie, in a file system that all its nodes see. Without it, runs.",
                  .optional = true});
  add_slurm_keys(keys);
  add_kubernetes_keys(keys);
  add_queue_keys(keys);
  keys.push_back({.path = "ssh.hosts",
                  .codec = hosts_codec(),
                  .doc = "Machines to start it on, [USER@]HOST[:PORT] each; the first leads.",
                  .optional = true});
}

}  // namespace systole
