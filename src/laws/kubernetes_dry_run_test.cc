// A real API server accepts every object under examples/rendered, in strict mode, and refuses mutants.
#include <algorithm>
#include <map>
#include <set>

#include "ground/base/document.h"
#include "ground/base/sourced_yaml.h"
#include "ground/base/testing/places.h"
#include "laws/kubernetes_cluster.h"

namespace systole {
namespace {

constexpr const char* kTaken = "kubectl apply --server-side --dry-run=server --validate=strict -f ";

struct Example {
  std::string file;
  std::vector<Node> objects;
};

// The Kubernetes files among the rendered examples.
std::vector<Example> examples() {
  std::vector<Example> all;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(SYSTOLE_SOURCE_DIR "/examples/rendered")) {
    if (entry.path().extension() != ".yaml") continue;
    Example example{entry.path().string(), {}};
    const std::string text = read_text_file(example.file).value();
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find("\n---\n", at), text.size());
      Result<Node> object = parse_yaml(text.substr(at, end - at), example.file);
      if (object.ok() && object->find("apiVersion") != nullptr) example.objects.push_back(*object);
      at = end + 5;
    }
    if (!example.objects.empty()) all.push_back(std::move(example));
  }
  return all;
}

std::string kind_of(const Node& object) { return object.find("kind")->text(); }

// Maps with user-defined keys.
bool is_open(const std::string& key) {
  static const std::set<std::string> open = {"labels",       "annotations", "matchLabels",     "data",   "stringData",
                                             "nodeSelector", "selector",    "requests",        "limits", "capacity",
                                             "parameters",   "nodeLabels",  "volumeAttributes"};
  return open.contains(key);
}

// Calls `change` for each position in the tree, with its key; except in labels and annotations, which kubectl parses
// before the server does.
void each_place(const Node& node, const std::string& key,
                const std::function<void(const Node&, const std::string&)>& change) {
  change(node, key);
  for (const Node::Entry& entry : node.entries())
    if (entry.key != "labels" && entry.key != "annotations") each_place(entry.value, entry.key, change);
  for (const Node& item : node.items()) each_place(item, key, change);
}

// `node` with its n-th position (as each_place counts) replaced.
Node replaced(const Node& node, int& n, const Node& by) {
  if (n-- == 0) return by;
  Node result = node.is_map() ? Node::map() : node.is_sequence() ? Node::sequence() : node;
  for (const Node::Entry& entry : node.entries()) {
    const bool left = entry.key == "labels" || entry.key == "annotations";
    result.set(entry.key, left ? entry.value : replaced(entry.value, n, by));
  }
  for (const Node& item : node.items()) result.push(replaced(item, n, by));
  return result;
}

// Kinds of other vendors whose definitions are in no Go module: they are checked only against their official schemas.
const std::set<std::string> kNotHere = {"ComputeDomain", "SecretProviderClass", "PodMonitoring", "Network",
                                        "GKENetworkParamSet"};
bool is_here(const Node& object) { return !kNotHere.contains(kind_of(object)); }

struct Mutant {
  std::string what;
  Node object;
};

Node without(const Node& map, const std::string& key) {
  Node rest = Node::map();
  for (const Node::Entry& entry : map.entries())
    if (entry.key != key) rest.set(entry.key, entry.value);
  return rest;
}

// Other projects' definitions check only a pod's fields and types, less than Kubernetes does.
bool is_kubernetes_own(const Node& object) {
  const std::string& version = object.find("apiVersion")->text();
  return !has(version, "x-k8s.io") && !has(version, "kubeflow.org");
}

// Required fields, and fields with enumerated values.
const std::set<std::string> kRequired = {"containers", "image", "mountPath", "template", "claimName"};
const std::set<std::string> kEnumerated = {"restartPolicy", "completionMode", "podReplacementPolicy", "action",
                                           "operator",      "effect",         "policyTypes",          "accessModes"};

std::vector<Mutant> mutants_of(const Node& object) {
  std::vector<Mutant> all;
  const bool own = is_kubernetes_own(object);
  int n = 0;
  each_place(object, "", [&](const Node& node, const std::string& key) {
    const auto put = [&](const std::string& what, Node by) {
      int at = n;
      all.push_back({kind_of(object) + ": " + what + " at " + key, replaced(object, at, by)});
    };
    if (node.is_map() && !is_open(key)) {
      Node more = node;
      put("unknown field", more.set("unknownField", "x"));
      for (const Node::Entry& entry : node.entries())
        if (own && kRequired.contains(entry.key)) put("without " + entry.key, without(node, entry.key));
    }
    if (node.is_scalar() && key != "kind" && key != "apiVersion" && key != "name" && key != "namespace")
      put("wrong type", Node::map({{"a", 1}}));
    if (own && node.is_scalar() && kEnumerated.contains(key)) put("wrong value", "Wrong");
    ++n;
  });
  return all;
}

// The changes in those mutants that kubectl reports as accepted.
std::string taken_of(const std::string& said, const std::vector<Mutant>& of) {
  std::string text;
  for (std::size_t m = 0; m < of.size(); ++m)
    if (has(said, fmt::format("/mutant-{} ", m))) text += "\n" + of[m].what;
  return text;
}

class KubernetesDryRun : public Kubernetes {
 protected:
  static void SetUpTestSuite() {
    begin("jobset kueue training-operator trainer");
    if (!missing_.empty()) return;
    std::set<std::string> spaces;
    std::string runtimes;
    for (const Example& example : examples())
      for (const Node& object : example.objects) {
        if (const Node* space = object.find("metadata")->find("namespace")) spaces.insert(space->text());
        if (kind_of(object) == "TrainingRuntime") runtimes += "---\n" + to_yaml(object);
      }
    std::string first;
    for (const std::string& space : spaces)
      first += fmt::format("---\napiVersion: v1\nkind: Namespace\nmetadata: {{ name: {} }}\n", space);
    apply("namespaces.yaml", first);
    // A TrainJob is refused without its runtime, which a dry run does not create.
    apply("runtimes.yaml", runtimes);
  }
  static void apply(const std::string& name, const std::string& text) {
    std::ofstream(*place_ / name) << text;
    const Captured applied = shell(". cluster/env; kubectl apply --server-side --validate=strict -f " + name, *place_);
    ASSERT_EQ(applied.exit.code, 0) << applied.err;
  }
};

TEST_F(KubernetesDryRun, takes_every_rendered_object) {
  const std::vector<Example> all = examples();
  ASSERT_GE(all.size(), 2u);
  for (const Example& example : all) {
    const Captured taken = run(kTaken + example.file);
    std::ptrdiff_t elsewhere = 0;
    for (const Node& object : example.objects)
      if (!is_here(object)) {
        ++elsewhere;
        EXPECT_TRUE(has(taken.err, "no matches for kind \"" + kind_of(object) + "\"")) << taken.err;
      }
    EXPECT_EQ(taken.exit.code == 0, elsewhere == 0) << example.file << "\n" << taken.err;
    EXPECT_EQ(std::ranges::count(taken.out, '\n'), std::ssize(example.objects) - elsewhere) << example.file << "\n"
                                                                                            << taken.out << taken.err;
  }
}

TEST_F(KubernetesDryRun, refuses_whatever_is_changed_in_one) {
  std::map<std::string, std::vector<Mutant>> mutants;  // of the largest object of each kind
  for (const Example& example : examples())
    for (const Node& object : example.objects) {
      if (!is_here(object)) continue;
      std::vector<Mutant> of = mutants_of(object);
      std::vector<Mutant>& most = mutants[kind_of(object)];
      if (of.size() > most.size()) most = std::move(of);
    }
  ASSERT_FALSE(mutants.empty());
  for (auto& [kind, of] : mutants) {
    ASSERT_GE(of.size(), 3u) << kind;
    std::string text;
    for (std::size_t m = 0; m < of.size(); ++m) {
      Node named = *of[m].object.find("metadata");
      named.set("name", fmt::format("mutant-{}", m));
      if (of[m].object.find("metadata")->is_map()) of[m].object.set("metadata", named);
      text += "---\n" + to_yaml(of[m].object);
    }
    write(kind + ".yaml", text);
    const Captured refused = run(kTaken + kind + ".yaml");
    std::cout << kind << ": " << of.size() << " changes\n";
    EXPECT_EQ(refused.out, "") << kind << ": these were taken" << taken_of(refused.out, of);
    // At least one refusal each; refusals of a quantity do not name their object.
    EXPECT_GE(std::ranges::count(refused.err, '\n'), std::ssize(of)) << kind << "\n" << refused.err.substr(0, 2000);
  }
}

}  // namespace
}  // namespace systole
