#include "operate/import/taken_fields.h"

#include <charconv>

namespace systole {

// A key may contain dots (nvidia.com/gpu): the longest existing key counts.
const Node* TakenFields::find(std::string_view path) const {
  const Node* now = &root_;
  while (!path.empty()) {
    if (now->is_sequence()) {
      const std::size_t dot = std::min(path.find('.'), path.size());
      std::size_t index = 0;
      const auto [end, failed] = std::from_chars(path.data(), path.data() + dot, index);
      if (failed != std::errc() || end != path.data() + dot || index >= now->items().size()) return nullptr;
      now = &now->items()[index];
      path = dot == path.size() ? "" : path.substr(dot + 1);
      continue;
    }
    const Node* next = nullptr;
    std::size_t taken = 0;
    for (const Node::Entry& entry : now->entries()) {
      const bool is_here = path == entry.key || (path.starts_with(entry.key) && path[entry.key.size()] == '.');
      if (is_here && entry.key.size() >= taken) {
        next = &entry.value;
        taken = entry.key.size();
      }
    }
    if (next == nullptr) return nullptr;
    now = next;
    path = taken == path.size() ? "" : path.substr(taken + 1);
  }
  return now->is_null() ? nullptr : now;
}

const Node* TakenFields::take(const std::string& path) {
  const Node* node = find(path);
  if (node != nullptr) taken_.insert(path);
  return node;
}

std::string TakenFields::text(const std::string& path) {
  const Node* node = find(path);
  if (node == nullptr || !node->is_scalar()) return "";
  taken_.insert(path);
  return node->text();
}

// Whether anything below was taken.
bool TakenFields::walk(const Node& node, const std::string& path, std::vector<std::string>& told) const {
  if (taken_.contains(path)) return true;
  bool any = false;
  std::vector<std::string> below;
  const auto child = [&](const std::string& step, const Node& value) {
    const std::string at = path.empty() ? step : path + "." + step;
    if (walk(value, at, below)) {
      any = true;
    } else if (!value.is_null()) {
      below.push_back(at);
    }
  };
  for (std::size_t i = 0; i < node.items().size(); ++i) child(std::to_string(i), node.items()[i]);
  for (const Node::Entry& entry : node.entries()) child(entry.key, entry.value);
  if (any) told.insert(told.end(), below.begin(), below.end());
  return any;
}

std::vector<std::string> TakenFields::rest() const {
  std::vector<std::string> told;
  walk(root_, "", told);
  return told;
}

}  // namespace systole
