#include "operate/render/template.h"

#include <algorithm>
#include <memory>
#include <set>

namespace systole {
namespace {

using Holes = std::vector<std::pair<std::string, Node>>;

Node filled(const Node& node, const Holes& holes, std::set<std::string>& used) {
  if (node.is_map()) {
    Node map;
    for (const Node::Entry& entry : node.entries()) {
      Node value = filled(entry.value, holes, used);
      if (!value.is_null()) map.set(entry.key, std::move(value));
    }
    return map;
  }
  if (node.is_sequence()) {
    Node list;
    for (const Node& item : node.items()) {
      Node value = filled(item, holes, used);
      if (!value.is_null()) list.push(std::move(value));
    }
    return list;
  }
  if (node.kind() != NodeKind::string || !node.text().starts_with('$')) {
    Node copy = node;
    copy.set_place({});
    return copy;
  }
  const std::string name = node.text().substr(1);
  const auto found = std::ranges::find(holes, name, &Holes::value_type::first);
  CHECK(found != holes.end(), "the hole ${} has no value", name);
  used.insert(name);
  return found->second;
}

}  // namespace

Node fill(std::string_view yaml, Holes holes) {
  std::set<std::string> used;
  Node made = filled(parse_yaml(yaml, "template").value(), holes, used);
  for (const auto& [name, value] : holes) CHECK(used.contains(name), "there is no hole ${}", name);
  return made;
}

Node from_catalog(Node scalar, std::string_view table, const Dated& dated) {
  const std::string when = dated.date.empty() ? "" : ", " + dated.date;
  scalar.set_place({std::make_shared<const std::string>(fmt::format("{}{}: {}", table, when, dated.source)), 0, 0});
  return scalar;
}

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  const std::size_t at = text.find(what);
  CHECK(at != text.npos, "{} is not in the text", what);
  return text.replace(at, what.size(), by);
}

}  // namespace systole
