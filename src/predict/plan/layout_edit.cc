#include "predict/plan/layout_edit.h"

#include "ground/base/document.h"

namespace systole {
namespace {

constexpr const char* kLayoutKeys[] = {
    "mesh",           "fully_sharded", "train.microbatches", "train.recompute", "pipeline.schedule", "pipeline.chunks",
    "pipeline.layers"};

const Node* at(const Node& document, std::string_view path) {
  const Node* node = &document;
  while (node != nullptr && !path.empty()) {
    const std::size_t dot = std::min(path.find('.'), path.size());
    node = node->find(path.substr(0, dot));
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  return node;
}

// YAML on one line.
std::string flow(const Node& node) {
  if (node.is_null()) return "null";
  if (node.is_scalar()) return node.text();
  std::string text;
  for (const Node& item : node.items()) text += (text.empty() ? "" : ", ") + flow(item);
  for (const Node::Entry& entry : node.entries())
    text += (text.empty() ? "" : ", ") + entry.key + ": " + flow(entry.value);
  if (text.empty() && node.is_map()) return "null";
  return node.is_map() ? "{" + text + "}" : "[" + text + "]";
}

}  // namespace

std::vector<std::string> layout_sets(const Workload& asked, const Workload& laid_out) {
  const Node before = to_node(asked), after = to_node(laid_out);
  std::vector<std::string> sets;
  for (const char* key : kLayoutKeys) {
    const Node *was = at(before, key), *is = at(after, key);
    const std::string old_text = was == nullptr ? "null" : flow(*was), text = is == nullptr ? "null" : flow(*is);
    if (old_text != text) sets.push_back(std::string(key) + "=" + text);
  }
  return sets;
}

}  // namespace systole
