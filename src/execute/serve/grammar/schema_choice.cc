#include "execute/serve/grammar/schema_choice.h"

#include <algorithm>

#include "ground/base/number_from.h"

namespace systole::grammar {
namespace {

constexpr std::size_t kMostPairs = 1 << 14;  // of values or names to compare; of more nothing is certain

std::string unescaped(std::string_view part) {
  std::string result;
  for (std::size_t i = 0; i < part.size(); ++i) {
    const bool escaped = part[i] == '~' && i + 1 < part.size() && (part[i + 1] == '0' || part[i + 1] == '1');
    result += escaped ? (part[++i] == '0' ? '~' : '/') : part[i];
  }
  return result;
}

// The values of a const or an enum; empty: it has neither.
std::span<const Node> values_of(const Node& schema) {
  if (const Node* one = schema.find("const")) return {one, 1};
  const Node* all = schema.find("enum");
  return all == nullptr ? std::span<const Node>() : all->items();
}

// Those that a valid value may have; empty: any.
std::vector<std::string_view> types_of(const Node& schema) {
  std::vector<std::string_view> types;
  if (const Node* type = schema.find("type")) {
    for (const Node& item : type->is_sequence() ? type->items() : std::span(type, 1))
      types.push_back(item.text() == "integer" ? std::string_view("number") : item.text());
    return types;
  }
  for (const Node& value : values_of(schema)) {
    types.push_back(value.is_map()                      ? "object"
                    : value.is_sequence()               ? "array"
                    : value.is_null()                   ? "null"
                    : value.kind() == NodeKind::number  ? "number"
                    : value.kind() == NodeKind::boolean ? "boolean"
                                                        : "string");
  }
  return types;
}

// Whether all values that are made for it are objects.
bool makes_objects(const Node& schema) {
  const auto types = schema.find("type") != nullptr ? types_of(schema) : implied_types(schema);
  return types == std::vector<std::string_view>{"object"};
}

std::span<const Node> required_of(const Node& schema) {
  const Node* required = schema.find("required");
  return required == nullptr ? std::span<const Node>() : required->items();
}

}  // namespace

std::vector<std::string_view> implied_types(const Node& schema) {
  std::vector<std::string_view> types;
  for (const Keyword& keyword : kKeywords) {
    const bool is_new = !keyword.type.empty() && std::ranges::find(types, keyword.type) == types.end();
    if (is_new && schema.find(keyword.name) != nullptr) types.push_back(keyword.type);
  }
  return types;
}

Result<Referred> find_referred(const Node& root, const Node& ref) {
  if (ref.kind() != NodeKind::string) return ref.wrong("a $ref: text");
  const std::string& text = ref.text();
  if (!text.starts_with("#") || (text.size() > 1 && text[1] != '/'))
    return error(ErrorKind::unsupported, "the $ref '{}' is not supported", text)
        .hinted("refer to a part of the schema, as \"#/$defs/name\"");
  const Node* at = &root;
  for (std::size_t begin = 1; begin < text.size();) {
    const std::size_t end = std::min(text.find('/', begin + 1), text.size());
    const std::string part = unescaped(std::string_view(text).substr(begin + 1, end - begin - 1));
    const auto index = number_from<std::size_t>(part);
    const bool is_item = at->is_sequence() && index && *index < at->items().size();
    at = at->is_sequence() ? (is_item ? &at->items()[*index] : nullptr) : at->find(part);
    if (at == nullptr) return error(ErrorKind::invalid, "the $ref '{}' refers to nothing", text);
    begin = end;
  }
  return Referred{text, at};
}

bool has_type(const Node& value, std::span<const std::string_view> types) {
  return std::ranges::any_of(types, [&](std::string_view type) {
    switch (value.kind()) {
      case NodeKind::null: return type == "null";
      case NodeKind::boolean: return type == "boolean";
      case NodeKind::string: return type == "string";
      case NodeKind::sequence: return type == "array";
      case NodeKind::map: return type == "object";
      case NodeKind::number: return type == "number" || (type == "integer" && value.as_int().ok());
    }
    return false;
  });
}

// Through references, as far as they go straight.
const Node& SchemaChoice::resolved(const Node& schema) {
  const Node* at = &schema;
  for (int i = 0; i < 16; ++i) {
    const Node* ref = at->find("$ref");
    if (ref == nullptr) break;
    const auto [known, is_new] = referred_.try_emplace(ref->text(), nullptr);
    if (is_new) {
      if (const Result<Referred> found = find_referred(root_, *ref); found.ok()) known->second = found->schema;
    }
    if (known->second == nullptr) break;
    at = known->second;
  }
  return *at;
}

// Whether so many comparisons may be made; they are taken from what is left.
bool SchemaChoice::may_compare(std::size_t a, std::size_t b) {
  if (a * b > kMostPairs) return false;
  left_ -= static_cast<std::int64_t>(a * b);
  return left_ >= 0;
}

bool SchemaChoice::have_none_in_common(std::span<const Node> a, std::span<const Node> b) {
  if (a.empty() || b.empty() || !may_compare(a.size(), b.size())) return false;
  // 1 and 1.0 are the same number with different texts.
  const auto is_text = [](const Node& node) { return node.kind() != NodeKind::number && node.is_scalar(); };
  if (!std::ranges::all_of(a, is_text) || !std::ranges::all_of(b, is_text)) return false;
  for (const Node& each : b) left_ -= static_cast<std::int64_t>(a.size() * each.text().size() / 64);
  return left_ >= 0 && std::ranges::none_of(a, [&](const Node& each) { return std::ranges::find(b, each) != b.end(); });
}

bool SchemaChoice::differ(const Node& a, const Node& b) {
  if (have_none_in_common(values_of(a), values_of(b))) return true;
  const std::vector<std::string_view> types = types_of(a), others = types_of(b);
  if (!types.empty() && !others.empty() && may_compare(types.size(), others.size()) &&
      std::ranges::none_of(types, [&](const auto& type) { return std::ranges::find(others, type) != others.end(); }))
    return true;
  const Node *properties = a.find("properties"), *of_other = b.find("properties");
  if (properties == nullptr || of_other == nullptr || !makes_objects(a) || !makes_objects(b)) return false;
  const std::span<const Node> needed = required_of(a), needed_by_other = required_of(b);
  const std::size_t looked_at = of_other->entries().size() + needed.size() + needed_by_other.size();
  if (!may_compare(properties->entries().size(), looked_at)) return false;
  return std::ranges::any_of(properties->entries(), [&](const Node::Entry& entry) {
    const Node* other = of_other->find(entry.key);
    const Node name(entry.key);
    const auto is_in = [&](std::span<const Node> names) { return std::ranges::find(names, name) != names.end(); };
    return other != nullptr && is_in(needed) && is_in(needed_by_other) &&
           have_none_in_common(values_of(resolved(entry.value)), values_of(resolved(*other)));
  });
}

bool SchemaChoice::all_differ(std::span<const Node> schemas) {
  if (schemas.size() > kMostChoices) return false;
  for (std::size_t i = 0; i < schemas.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (!differ(resolved(schemas[i]), resolved(schemas[j]))) return false;
    }
  }
  return true;
}

}  // namespace systole::grammar
