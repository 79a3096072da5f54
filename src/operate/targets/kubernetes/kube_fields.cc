#include "operate/targets/kubernetes/kube_fields.h"

#include "ground/base/result.h"

namespace systole {

const Node* at(const Node& object, std::initializer_list<std::string_view> keys) {
  const Node* node = &object;
  for (const std::string_view key : keys)
    if (node = node->find(key); node == nullptr) return nullptr;
  return node;
}

std::string text_at(const Node& object, std::initializer_list<std::string_view> keys) {
  const Node* node = at(object, keys);
  return node != nullptr && node->is_scalar() ? node->text() : "";
}

std::int64_t number_at(const Node& object, std::initializer_list<std::string_view> keys, std::int64_t otherwise) {
  const Node* node = at(object, keys);
  const Result<std::int64_t> number = node == nullptr ? Result<std::int64_t>(otherwise) : node->as_int();
  return number.ok() ? *number : otherwise;
}

std::string name_of(const Node& object) { return text_at(object, {"metadata", "name"}); }

std::string label_of(const Node& object, std::string_view label) {
  return text_at(object, {"metadata", "labels", label});
}

std::string container_of(const Node& pod) {
  const Node* all = at(pod, {"spec", "containers"});
  if (all == nullptr || all->items().empty()) return "systole";
  for (const Node& one : all->items())
    if (text_at(one, {"name"}) == "systole") return "systole";
  return text_at(all->items()[0], {"name"});
}

}  // namespace systole
