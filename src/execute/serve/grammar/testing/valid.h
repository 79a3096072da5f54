#pragma once
// Whether a value is valid under a JSON Schema: slow and plain, for comparison with what grammars accept. Of the
// keywords that json_schema.h reads, all but pattern and format.

#include <algorithm>
#include <cmath>

#include "execute/serve/grammar/schema_choice.h"
#include "ground/base/utf8.h"

namespace systole::grammar {

inline std::int64_t characters_in(const std::string& text) {
  return std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

inline bool is_valid(const Node& root, const Node& schema, const Node& value) {
  if (schema.kind() == NodeKind::boolean) return schema == Node(true);
  const auto within = [&](const char* least, const char* most, double size) {
    const Node *low = schema.find(least), *high = schema.find(most);
    return (low == nullptr || size >= low->as_double().value()) &&
           (high == nullptr || size <= high->as_double().value());
  };
  if (const Node* ref = schema.find("$ref")) {
    if (!is_valid(root, *find_referred(root, *ref).value().schema, value)) return false;
  }
  for (const char* kind : {"anyOf", "oneOf", "allOf"}) {
    const Node* choices = schema.find(kind);
    if (choices == nullptr) continue;
    const auto count = std::ranges::count_if(choices->items(), [&](const Node& c) { return is_valid(root, c, value); });
    const auto all = static_cast<std::ptrdiff_t>(choices->items().size());
    const std::string_view name = kind;
    if (name == "anyOf" ? count == 0 : name == "oneOf" ? count != 1 : count != all) return false;
  }
  if (const Node* one = schema.find("const"); one != nullptr && value != *one) return false;
  if (const Node* all = schema.find("enum");
      all != nullptr && std::ranges::find(all->items(), value) == all->items().end())
    return false;
  if (const Node* type = schema.find("type")) {
    std::vector<std::string_view> types;
    for (const Node& item : type->is_sequence() ? type->items() : std::span(type, 1)) types.push_back(item.text());
    if (!has_type(value, types)) return false;
  }
  if (value.kind() == NodeKind::string) {
    if (!within("minLength", "maxLength", static_cast<double>(characters_in(value.text())))) return false;
  }
  if (value.kind() == NodeKind::number) {
    const double number = value.as_double().value();
    if (!within("minimum", "maximum", number)) return false;
    const Node *low = schema.find("exclusiveMinimum"), *high = schema.find("exclusiveMaximum");
    if (low != nullptr && number <= low->as_double().value()) return false;
    if (high != nullptr && number >= high->as_double().value()) return false;
  }
  if (value.is_sequence()) {
    if (!within("minItems", "maxItems", static_cast<double>(value.items().size()))) return false;
    const Node* items = schema.find("items");
    if (items != nullptr &&
        !std::ranges::all_of(value.items(), [&](const Node& item) { return is_valid(root, *items, item); }))
      return false;
  }
  if (value.is_map()) {
    const Node *properties = schema.find("properties"), *others = schema.find("additionalProperties");
    if (const Node* required = schema.find("required")) {
      for (const Node& name : required->items()) {
        if (value.find(name.text()) == nullptr) return false;
      }
    }
    for (const Node::Entry& entry : value.entries()) {
      const Node* property = properties == nullptr ? nullptr : properties->find(entry.key);
      const Node* by = property != nullptr ? property : others;
      if (by != nullptr && !is_valid(root, *by, entry.value)) return false;
    }
  }
  return true;
}

}  // namespace systole::grammar
