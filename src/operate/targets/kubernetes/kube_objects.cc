#include "operate/targets/kubernetes/kube_objects.h"

#include <algorithm>
#include <filesystem>

#include "ground/base/files.h"
#include "ground/base/text_file.h"
#include "operate/render/kube_quantity.h"
#include "operate/targets/kubernetes/kube_api.h"

namespace systole {
namespace {

namespace fs = std::filesystem;

void add_label(Node& node, const std::string& run, const std::string& submission) {
  if (node.is_map()) {
    Node changed = Node::map();
    for (const Node::Entry& entry : node.entries()) {
      Node value = entry.value;
      const Node* label = entry.key == "labels" ? value.find(kRunLabel) : nullptr;
      if (label != nullptr && label->text() == run) value.set(kSubmissionLabel, submission);
      add_label(value, run, submission);
      changed.set(entry.key, std::move(value));
    }
    node = std::move(changed);
  } else if (node.is_sequence()) {
    Node changed = Node::sequence();
    for (Node item : node.items()) {
      add_label(item, run, submission);
      changed.push(std::move(item));
    }
    node = std::move(changed);
  }
}

std::int64_t count_of(const Node& spec) {
  for (const char* key : {"parallelism", "replicas", "numNodes"})
    if (spec.find(key) != nullptr) return number_at(spec, {key}, 1);
  return 1;
}

// Finds every pod template; the fields above it multiply the count.
void find_gangs(const Node& node, std::int64_t times, const Node& metadata, std::vector<PodGang>& gangs) {
  for (const Node& item : node.items()) find_gangs(item, times, metadata, gangs);
  if (!node.is_map()) return;
  const std::int64_t here = times * count_of(node);
  for (const Node::Entry& entry : node.entries()) {
    if (entry.key != "template" || at(entry.value, {"spec", "containers"}) == nullptr) {
      find_gangs(entry.value, entry.key == "template" || entry.key == "spec" ? here : times, metadata, gangs);
      continue;
    }
    Node about = Node::map({{"name", text_at(metadata, {"name"}) + "-try"}});
    about.set("namespace", text_at(metadata, {"namespace"}));
    if (const Node* labels = at(entry.value, {"metadata", "labels"})) about.set("labels", *labels);
    Node pod = Node::map({{"apiVersion", "v1"}, {"kind", "Pod"}, {"metadata", about}});
    gangs.push_back({here, pod.set("spec", *at(entry.value, {"spec"}))});
  }
}

bool mounts_secret(const Node& node, const std::string& name) {
  if (const Node* secret = node.find("secret"); secret != nullptr && text_at(*secret, {"secretName"}) == name)
    return true;
  const auto in = [&](const Node& child) { return mounts_secret(child, name); };
  return std::ranges::any_of(node.items(), in) ||
         std::ranges::any_of(node.entries(), [&](const Node::Entry& entry) { return in(entry.value); });
}

}  // namespace

const std::vector<PodMaker>& pod_makers() {
  static const std::vector<PodMaker> all = {
      {"batch/v1", "Job", "Complete", "Failed", {"spec", "suspend"}},
      {"jobset.x-k8s.io/v1alpha2", "JobSet", "Completed", "Failed", {"spec", "suspend"}},
      {"kubeflow.org/v1", "PyTorchJob", "Succeeded", "Failed", {"spec", "runPolicy", "suspend"}},
      {"kubeflow.org/v1", "JAXJob", "Succeeded", "Failed", {"spec", "runPolicy", "suspend"}},
      {"trainer.kubeflow.org/v1alpha1", "TrainJob", "Complete", "Failed", {"spec", "suspend"}}};
  return all;
}

const PodMaker* pod_maker(const Node& object) {
  for (const PodMaker& maker : pod_makers())
    if (text_at(object, {"apiVersion"}) == maker.api_version && text_at(object, {"kind"}) == maker.kind) return &maker;
  return nullptr;
}

Result<std::vector<Node>> read_documents(std::string_view text, const std::string& file) {
  std::vector<Node> documents;
  for (std::size_t at = 0, lines = 0; at < text.size();) {
    std::size_t end = text.starts_with("---\n") && at == 0 ? 0 : text.find("\n---\n", at);
    end = end == text.npos ? text.size() : end == 0 ? 0 : end + 1;
    const std::string_view part = text.substr(at, end - at);
    Result<Node> node = parse_yaml(part, file);
    if (!node.ok()) {
      Error wrong = std::move(node).error();
      if (wrong.where.line > 0) wrong.where.line += static_cast<int>(lines);
      return wrong;
    }
    if (!node->is_null()) documents.push_back(std::move(*node));
    lines += static_cast<std::size_t>(std::ranges::count(part, '\n')) + 1;
    at = std::min(end + 4, text.size());
  }
  return documents;
}

Result<std::vector<Node>> read_objects(const Record& record) {
  std::vector<Node> objects;
  for (const fs::path& file : TRY(files_below(record.place + "/files"))) {
    if (file.extension() != ".yaml") continue;
    const std::string path = file.string();
    for (Node& object : TRY(read_documents(TRY(read_text_file(path)), path))) {
      if (text_at(object, {"apiVersion"}).empty() || text_at(object, {"kind"}).empty() ||
          text_at(object, {"metadata", "name"}).empty())
        return error(ErrorKind::invalid, "this is no object of Kubernetes").at({path, 0, 0});
      objects.push_back(std::move(object));
    }
  }
  if (std::ranges::none_of(objects, [](const Node& object) { return pod_maker(object) != nullptr; }))
    return error(ErrorKind::invalid, "nothing in '{}/files' makes pods", record.place);
  std::ranges::stable_partition(objects, [](const Node& object) { return pod_maker(object) == nullptr; });
  return objects;
}

Node labelled(const Node& object, const std::string& run, const std::string& submission) {
  Node with = object;
  add_label(with, run, submission);
  return with;
}

std::vector<PodGang> gangs_of(const Node& object) {
  std::vector<PodGang> gangs;
  const Node* spec = object.find("spec");
  const Node* metadata = object.find("metadata");
  if (spec == nullptr || metadata == nullptr) return gangs;
  find_gangs(*spec, 1, *metadata, gangs);
  return gangs;
}

bool holds_data(std::string_view kind) { return kind.starts_with("PersistentVolume") || kind == "StorageClass"; }

bool wants_token(const std::vector<Node>& objects, const std::string& run) {
  const std::string name = run + "-token";
  for (const Node& object : objects)
    if (text_at(object, {"kind"}) == "Secret" && text_at(object, {"metadata", "name"}) == name) return false;
  return std::ranges::any_of(objects, [&](const Node& object) { return mounts_secret(object, name); });
}

std::map<std::string, double> requests_of(const Node& pod) {
  std::map<std::string, double> sum;
  const auto each = [&](const char* list, const auto& take) {
    const Node* containers = at(pod, {"spec", list});
    if (containers == nullptr) return;
    for (const Node& container : containers->items())
      for (const char* side : {"requests", "limits"})
        if (const Node* all = at(container, {"resources", side}))
          for (const Node::Entry& entry : all->entries())
            take(std::string(side) + "." + entry.key, quantity_of(entry.value.text()).value_or(0));
  };
  each("containers", [&](const std::string& name, double value) { sum[name] += value; });
  each("initContainers", [&](const std::string& name, double value) { sum[name] = std::max(sum[name], value); });
  sum["pods"] = 1;
  // A quota may also name a request without the prefix.
  for (const char* name : {"cpu", "memory", "ephemeral-storage"})
    if (const auto request = sum.find(std::string("requests.") + name); request != sum.end())
      sum[name] = request->second;
  return sum;
}

}  // namespace systole
