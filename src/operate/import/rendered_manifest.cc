#include "operate/import/rendered_manifest.h"

#include <functional>

#include "operate/import/flags.h"
#include "operate/import/taken_fields.h"
#include "operate/render/kube_quantity.h"
#include "operate/render/quote.h"

namespace systole {
namespace {

// Visits every pod's containers, anywhere in the object.
void each_container(const Node& node, const std::function<void(const Node&)>& visit) {
  for (const Node& item : node.items()) each_container(item, visit);
  for (const Node::Entry& entry : node.entries()) {
    if (entry.key == "containers" && entry.value.is_sequence())
      for (const Node& container : entry.value.items()) visit(container);
    else
      each_container(entry.value, visit);
  }
}

// Reads fields that correspond to one key. The other fields depend on several keys, on machines or on nothing.
class Edits {
 public:
  Edits(const Workload& workload, Draft& draft) : w_(workload), draft_(draft) {}

  void read(const Node& object) {
    const std::string kind = object.text_at("kind");
    if (kind == "ConfigMap") return;
    const TakenFields fields(object);
    const auto said = [&](const char* path) {
      const Node* node = fields.find(path);
      return node != nullptr && node->is_scalar() ? node->text() : "";
    };
    const std::string space = said("metadata.namespace");
    if (!space.empty() && space != (w_.kubernetes.name_space.empty() ? "default" : w_.kubernetes.name_space))
      draft_.set("kubernetes.namespace", space, "metadata.namespace");
    if (kind == "Job") nodes(said("spec.completions"));
    each_container(object, [&](const Node& each) { container(each); });
  }

 private:
  void nodes(const std::string& text) {
    const ResourcesSpec& r = w_.resources;
    if (text.empty() || (!r.nodes && !r.accelerators.empty())) return;
    if (text != std::to_string(r.nodes ? r.nodes->most : 1)) {
      if (const auto n = count_of(draft_, {text, "spec.completions"}))
        draft_.set("resources.nodes", *n, "spec.completions");
    }
  }

  void container(const Node& each) {
    const std::string image = each.text_at("image");
    if (!image.empty() && image != w_.image) draft_.set("image", image, "image");
    if (const Node* env = each.find("env"))
      for (const Node& variable : env->items()) environment(variable.text_at("name"), variable.find("value"));
    const TakenFields fields(each);
    const auto limit = [&](const char* name, std::int64_t rendered, const char* key) {
      const Node* node = fields.find(std::string("resources.limits.") + name);
      const std::optional<double> amount =
          node == nullptr || !node->is_scalar() ? std::nullopt : quantity_of(node->text());
      if (!amount || *amount < 1) return;
      const auto whole = static_cast<std::int64_t>(*amount);
      if (whole == rendered) return;
      draft_.set(key, key == kMemory ? bytes_node(Bytes(whole)) : Node(whole),
                 fmt::format("{} {}", name, node->text()));
    };
    const ResourcesSpec& r = w_.resources;
    if (r.memory) limit("memory", (r.memory->count() + 1023) / 1024 * 1024, kMemory);  // rounded like render
    if (r.gpus_per_node) limit("nvidia.com/gpu", *r.gpus_per_node, "resources.gpus_per_node");
  }

  void environment(const std::string& name, const Node* value) {
    const auto was = w_.env.find(name);
    if (was == w_.env.end() || value == nullptr || !value->is_scalar() || value->text() == kube_value(was->second))
      return;
    std::string text;
    for (std::size_t i = 0; i < value->text().size(); ++i) {
      text += value->text()[i];
      if (value->text().compare(i, 2, "$$") == 0) ++i;
    }
    draft_.set_entry("env", name, text, "env " + name);
  }

  static constexpr const char* kMemory = "resources.memory";
  const Workload& w_;
  Draft& draft_;
};

}  // namespace

bool read_rendered(const std::vector<Node>& objects, Draft& draft) {
  for (const Node& object : objects) {
    const TakenFields fields(object);
    const Node* by = fields.find("metadata.labels.app.kubernetes.io/managed-by");
    const Node* text = fields.find("data.workload.yaml");
    if (object.text_at("kind") != "ConfigMap" || by == nullptr || by->text() != "systole" || text == nullptr) continue;
    const Result<Workload> workload = read_workload(text->text(), "workload.yaml");
    if (!workload.ok()) {
      draft.wrong(workload.error());
      return true;
    }
    draft.begin_with(*workload, parse_yaml(text->text(), "workload.yaml").value());
    Edits edits(draft.begun_with(), draft);
    for (const Node& each : objects) edits.read(each);
    draft.left_out("other changes of the manifest",
                   "its workload is in it; read back are image, namespace, nodes, memory, GPUs and values of env");
    return true;
  }
  return false;
}

}  // namespace systole
