#include "describe/spec/schema.h"

#include <algorithm>
#include <cctype>

#include "describe/spec/run_name.h"
#include "ground/base/utf8.h"

namespace systole {
namespace {

constexpr std::int64_t kVersion = 1;

// Refuses a newer document by its version, before its unknown keys are reported.
Codec version_codec() {
  Codec c = count_codec(AT(version), 1, 1'000'000);
  c.read = [read = c.read](const Node& node, Workload& w) -> Status {
    TRY(read(node, w));
    if (w.version <= kVersion) return Done{};
    return error(ErrorKind::unsupported, "this document is of version {}; this systole reads up to {}", w.version,
                 kVersion)
        .coded(ErrorCode::newer_version)
        .at(node.where())
        .hinted("use a newer systole, or systole: 1");
  };
  c.range = "1";
  return c;
}

// Folders of runs have this name with a number appended, and commands name runs by it.
Codec name_codec() {
  constexpr std::size_t kMost = 200;  // bytes; a file's name has 255
  Codec c = text_codec(AT(name));
  c.type = "a folder's name";
  c.read = [read = c.read](const Node& node, Workload& w) -> Status {
    TRY(read(node, w));
    const std::string& name = w.name;
    const auto is_control = [](char letter) { return static_cast<unsigned char>(letter) < 0x20 || letter == 0x7f; };
    const auto at_sign = taken_for_checkpoint(name);
    const char* why = name.empty()                           ? "it is empty"
                      : name.find('/') != name.npos          ? "it has a '/'"
                      : at_sign                              ? at_sign->why
                      : name[0] == '.' || name[0] == '-'     ? "it begins with '.' or '-'"
                      : name[0] == ' ' || name.back() == ' ' ? "it begins or ends with a space"
                      : std::ranges::any_of(name, is_control) || find_invalid_utf8(name)
                          ? "it has signs that are no text"
                      : name.size() > kMost ? "it is too long"
                                            : nullptr;
    if (why == nullptr) return Done{};
    std::string plain;
    for (const char letter : name.substr(0, 60))
      if (std::isalnum(static_cast<unsigned char>(letter)) != 0) {
        plain += letter;
      } else if (!plain.empty() && plain.back() != '-') {
        plain += '-';
      }
    while (!plain.empty() && plain.back() == '-') plain.pop_back();
    std::string shown = replace_invalid_utf8(name.substr(0, 60));
    std::ranges::replace_if(shown, is_control, '?');
    return error(ErrorKind::invalid, "'{}{}' cannot name a run's folder: {}", shown, name.size() > 60 ? "..." : "", why)
        .at(node.where())
        .hinted("name: " + (plain.empty() ? "first" : plain));
  };
  return c;
}

Schema make() {
  Schema schema;
  schema.sections.push_back({"", "A workload.", {}, {}});
  schema.keys.push_back({.path = "systole", .codec = version_codec(), .doc = "Version of this document."});
  schema.keys.push_back({.path = "name", .codec = name_codec(), .doc = "What runs of this workload are called."});
  schema.keys.push_back(
      {.path = "workload",
       .codec = choice_codec<Workload::Kind>(
           AT(kind),
           {{"train", Workload::Kind::train}, {"serve", Workload::Kind::serve}, {"machines", Workload::Kind::machines}},
           {"batch"}),
       .doc = "What is done. serve: `systole plan` says how many users a device carries. machines: nothing runs, and "
              "`systole render --on gcloud` writes what makes them.",
       .default_yaml = "train"});
  schema.keys.push_back({.path = "command",
                         .codec = without_secret_texts(command_codec(AT(command)), "command"),
                         .doc = "A program of your own (PyTorch, JAX) to run in place of a model: its words.",
                         .more = "It is started once a rank, with the environment that torchrun and jax.distributed "
                                 "give; `systole run job.yaml --ranks 4` starts four. Nothing of a model stands beside "
                                 "it. A text is cut at spaces, a list is taken as it is.",
                         .optional = true});
  add_model_keys(schema);
  add_data_keys(schema);
  add_train_keys(schema);
  add_run_keys(schema);
  add_serve_keys(schema);
  add_cluster_keys(schema);
  add_gke_keys(schema);
  add_gcloud_keys(schema);
  add_cost_keys(schema);
  return schema;
}

}  // namespace

const Schema& schema() {
  static const Schema made = make();
  return made;
}

const Key* Schema::key(std::string_view path) const {
  const auto found = std::ranges::find(keys, path, &Key::path);
  return found == keys.end() ? nullptr : &*found;
}

const Section* Schema::section(std::string_view path) const {
  const auto found = std::ranges::find(sections, path, &Section::path);
  return found == sections.end() ? nullptr : &*found;
}

std::vector<std::string> Schema::names_under(std::string_view section) const {
  std::vector<std::string> names;
  for (const Key& k : keys) {
    std::string_view rest = k.path;
    if (!section.empty()) {
      if (!rest.starts_with(section) || rest[section.size()] != '.') continue;
      rest.remove_prefix(section.size() + 1);
    }
    const std::string name(rest.substr(0, rest.find('.')));
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names;
}

std::string type_of(const Key& key) {
  const Codec& c = key.codec;
  if (!c.allowed.empty() && c.type == "name") return fmt::format("{}", fmt::join(c.allowed, " | "));
  return c.range.empty() ? c.type : fmt::format("{}, {}", c.type, c.range);
}

bool goes_with_command(const Key& key) {
  constexpr std::string_view kBeside[] = {"systole",
                                          "name",
                                          "workload",
                                          "command",
                                          "ranks.notice",
                                          "ranks.preemption",
                                          "ranks.retries",
                                          "ranks.tls",
                                          "resources.memory",
                                          "resources.threads",
                                          "resources.nodes",
                                          "resources.ranks_per_node",
                                          "resources.gpus_per_node",
                                          "resources.longest",
                                          "resources.accelerators",
                                          "resources.slices",
                                          "resources.provisioning",
                                          "resources.reservation",
                                          "resources.price",
                                          "resources.loader.workers",
                                          "resources.loader.batch_size",
                                          "resources.loader.sample",
                                          "resources.loader.prefetch",
                                          "objective.budget",
                                          "resume.from",
                                          "image",
                                          "env",
                                          "claims",
                                          "volumes",
                                          "secrets",
                                          "folder",
                                          "labels"};
  constexpr std::string_view kSections[] = {"slurm.", "kubernetes.", "gke.", "gcloud.", "ssh."};
  return std::ranges::find(kBeside, key.path) != std::end(kBeside) ||
         std::ranges::any_of(kSections, [&](std::string_view section) { return key.path.starts_with(section); });
}

bool goes_with_kind(const Key& key, const Workload& workload) {
  if (workload.kind == Workload::Kind::serve) return goes_with_serving(key);
  return workload.has_model() || goes_with_command(key);
}

bool applies(const Key& key, Workload& workload) {
  if (!goes_with_kind(key, workload)) return false;
  if (key.when.key.empty()) return true;
  const Key* decider = schema().key(key.when.key);
  CHECK(decider != nullptr, "{} depends on {}, which is no key", key.path, key.when.key);
  const Node now = decider->codec.write(workload);
  if (key.when.values.empty()) return !now.is_null();
  return std::ranges::find(key.when.values, now.text()) != key.when.values.end();
}

}  // namespace systole
