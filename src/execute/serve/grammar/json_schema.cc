#include "execute/serve/grammar/json_schema.h"

#include <algorithm>
#include <array>
#include <deque>
#include <unordered_set>

#include "execute/serve/grammar/scalar_schemas.h"
#include "execute/serve/grammar/schema_choice.h"

namespace systole::grammar {
namespace {

constexpr std::array<std::string_view, 7> kTypes{"object", "array", "string", "number", "integer", "boolean", "null"};

constexpr std::array<std::string_view, 14> kAnnotations{
    "title",     "description", "default", "examples", "example", "deprecated",  "readOnly",
    "writeOnly", "$comment",    "$schema", "$id",      "$defs",   "definitions", "discriminator"};

std::int64_t count_nodes(const Node& node) {
  std::int64_t count = 1;
  for (const Node& item : node.items()) count += count_nodes(item);
  for (const Node::Entry& entry : node.entries()) count += count_nodes(entry.value);
  return count;
}

}  // namespace

class JsonSchema::Impl {
 public:
  Impl(const Node& root, AutomatonBuilder& builder, JsonRules& json)
      : root_(root), builder_(builder), json_(json), scalars_(builder, json), choice_(root) {}

  Result<Rule> add() {
    if (count_nodes(root_) > kMostNodes)
      return error(ErrorKind::does_not_fit, "the schema has {} keywords and values, at most {} may be given",
                   count_nodes(root_), kMostNodes);
    const Rule whole = rule_of("#", root_);
    while (!open_.empty()) {
      const Open next = open_.front();
      open_.pop_front();
      builder_.finish(next.rule, TRY(value(*next.schema, next.path, builder_.begin_of(next.rule))));
      if (builder_.full()) return error(ErrorKind::does_not_fit, "the schema is too large");
    }
    return whole;
  }

 private:
  struct Open {
    Rule rule = 0;
    const Node* schema = nullptr;
    std::string path;
  };

  // The rule of a schema that is used more than once. Its text follows later.
  Rule rule_of(const std::string& path, const Node& schema) {
    const auto [found, is_new] = rules_.try_emplace(path, 0);
    if (is_new) {
      found->second = builder_.declare();
      open_.push_back({found->second, &schema, path});
    }
    return found->second;
  }

  // Refuses keywords that are not in `known` and change something.
  static Status only(const Node& schema, const std::string& path, std::span<const std::string_view> known,
                     std::string_view beside) {
    for (const Node::Entry& entry : schema.entries()) {
      const auto is_in = [&](const auto& names) { return std::ranges::find(names, entry.key) != names.end(); };
      if (is_in(kAnnotations) || is_in(known)) continue;
      const bool read = std::ranges::any_of(kKeywords, [&](const Keyword& k) { return k.name == entry.key; }) ||
                        is_in(std::array<std::string_view, 6>{"enum", "const", "anyOf", "oneOf", "allOf", "$ref"});
      if (read && !beside.empty())
        return error(ErrorKind::unsupported, "{}: '{}' beside '{}' is not supported", path, entry.key, beside);
      return error(ErrorKind::unsupported, "{}: the keyword '{}' is not supported", path, entry.key);
    }
    return {};
  }

  Result<State> value(const Node& schema, const std::string& path, State from) {
    if (builder_.full()) return from;
    if (schema.kind() == NodeKind::boolean) {
      if (*schema.as_bool()) return json_.value(from);
      return builder_.state();  // nothing conforms, so nothing leads there
    }
    if (!schema.is_map()) return placed(path, schema.wrong("a schema: a map, true or false"));
    if (const Node* ref = schema.find("$ref")) {
      static constexpr std::array<std::string_view, 1> kKnown{"$ref"};
      TRY(only(schema, path, kKnown, "$ref"));
      return builder_.call(from, TRY(referred(*ref, path)));
    }
    for (const std::string_view kind : {"anyOf", "oneOf", "allOf"}) {
      if (const Node* choices = schema.find(kind)) {
        TRY(only(schema, path, std::span(&kind, 1), kind));
        return choice(*choices, kind, under(path, kind), from);
      }
    }
    if (schema.find("enum") != nullptr || schema.find("const") != nullptr) return enumeration(schema, path, from);
    return typed(schema, path, from);
  }

  Result<Rule> referred(const Node& ref, const std::string& path) {
    const Result<Referred> found = find_referred(root_, ref);
    if (!found.ok()) return placed(path, found.error());
    return rule_of(found->path, *found->schema);
  }

  Result<State> choice(const Node& choices, std::string_view kind, const std::string& path, State from) {
    if (!choices.is_sequence() || choices.items().empty()) return placed(path, choices.wrong("a list of schemas"));
    if (kind == "allOf" && choices.items().size() > 1)
      return error(ErrorKind::unsupported, "{}: allOf of more than one schema is not supported", path);
    if (kind == "oneOf" && !choice_.all_differ(choices.items()))
      return error(ErrorKind::unsupported, "{}: more than one of these schemas may hold", path)
          .hinted("use anyOf, or give each a required property with a const of its own");
    std::vector<State> ends;
    for (std::size_t i = 0; i < choices.items().size(); ++i)
      ends.push_back(TRY(value(choices.items()[i], fmt::format("{}/{}", path, i), from)));
    return builder_.joined(ends);
  }

  Result<State> enumeration(const Node& schema, const std::string& path, State from) {
    static constexpr std::array<std::string_view, 3> kKnown{"enum", "const", "type"};
    TRY(only(schema, path, kKnown, schema.find("enum") != nullptr ? "enum" : "const"));
    const std::vector<std::string_view> types = TRY(types_of(schema, path));
    const Node *all = schema.find("enum"), *one = schema.find("const");
    if (all != nullptr && (!all->is_sequence() || all->items().empty()))
      return placed(under(path, "enum"), all->wrong("a list of values"));
    std::vector<State> ends;
    const auto items = all != nullptr ? all->items() : std::span(one, 1);
    for (const Node& item : items) {
      if (one != nullptr && item != *one) continue;
      if (!types.empty() && !has_type(item, types)) continue;
      ends.push_back(json_.literal(from, item));
    }
    if (ends.empty()) return error(ErrorKind::invalid, "{}: no value has its type", path);
    return builder_.joined(ends);
  }

  static Result<std::vector<std::string_view>> types_of(const Node& schema, const std::string& path) {
    std::vector<std::string_view> types;
    const Node* type = schema.find("type");
    if (type == nullptr) return types;
    const std::span<const Node> items = type->is_sequence() ? type->items() : std::span(type, 1);
    for (const Node& item : items) {
      const auto known = std::ranges::find(kTypes, item.kind() == NodeKind::string ? item.text() : "");
      if (known == kTypes.end()) return placed(under(path, "type"), item.wrong("a type of JSON Schema"));
      types.push_back(*known);
    }
    if (types.empty()) return error(ErrorKind::invalid, "{}: no type", under(path, "type"));
    return types;
  }

  Result<State> typed(const Node& schema, const std::string& path, State from) {
    std::vector<std::string_view> known;
    for (const Keyword& keyword : kKeywords) known.push_back(keyword.name);
    TRY(only(schema, path, known, ""));
    std::vector<std::string_view> types = TRY(types_of(schema, path));
    if (types.empty()) types = implied_types(schema);
    if (types.empty()) return json_.value(from);
    std::vector<State> ends;
    for (const std::string_view type : types) ends.push_back(TRY(of_type(type, schema, path, from)));
    return builder_.joined(ends);
  }

  Result<State> of_type(std::string_view type, const Node& schema, const std::string& path, State from) {
    if (type == "object") return object(schema, path, from);
    if (type == "array") return array(schema, path, from);
    if (type == "string") return scalars_.string(schema, path, from);
    if (type == "integer") return scalars_.integer(schema, path, from);
    if (type == "number") return scalars_.number(schema, path, from);
    if (type == "null") return builder_.text(from, "null");
    const std::array ends{builder_.text(from, "true"), builder_.text(from, "false")};
    return builder_.joined(ends);
  }

  Result<State> array(const Node& schema, const std::string& path, State from) {
    constexpr std::int64_t kMostItems = 20'000;
    const auto fewest = TRY(ScalarSchemas::count_of(schema, path, "minItems", kMostItems));
    const auto most = TRY(ScalarSchemas::count_of(schema, path, "maxItems", std::numeric_limits<std::int64_t>::max()));
    const std::int64_t least = fewest.value_or(0);
    if (most && *most < least) return error(ErrorKind::invalid, "{}: maxItems is less than minItems", path);
    const Node* items = schema.find("items");
    const State open = builder_.text(from, "["), first = gap_behind(open);
    std::vector<State> closing;
    if (least == 0) closing.push_back(first);
    const auto item = [&](State at) -> Result<State> {
      if (items == nullptr) return json_.value(at);
      if (!most && least <= 1) return value(*items, under(path, "items"), at);  // it is there once
      return builder_.call(at, rule_of(under(path, "items"), *items));
    };
    if (!most) {
      State begin = first, end = first;
      for (std::int64_t i = 0; i + 1 < least && !builder_.full(); ++i)
        begin = gap_behind(builder_.text(end = TRY(item(begin)), ","));
      const State loop = builder_.state();
      builder_.skip(begin, loop);
      end = TRY(item(loop));
      builder_.skip(gap_behind(builder_.text(end, ",")), loop);
      closing.push_back(gap_behind(end));
    } else {
      State begin = first;
      for (std::int64_t i = 1; i <= *most && !builder_.full(); ++i) {
        const State end = TRY(item(begin));
        if (i >= least) closing.push_back(gap_behind(end));
        if (i < *most) begin = gap_behind(builder_.text(end, ","));
      }
      if (builder_.full()) return error(ErrorKind::does_not_fit, "{}: maxItems is too large", path);
    }
    return builder_.text(builder_.joined(closing), "]");
  }
  State gap_behind(State from) { return json_.gap(from); }

  Result<State> object(const Node& schema, const std::string& path, State from) {
    const Node *properties = schema.find("properties"), *required = schema.find("required"),
               *others = schema.find("additionalProperties");
    if (properties != nullptr && !properties->is_map()) return placed(path, properties->wrong("a map of properties"));
    std::unordered_set<std::string> needed;
    std::vector<std::string> names;
    if (required != nullptr) {
      if (!required->is_sequence()) return placed(under(path, "required"), required->wrong("a list of names"));
      for (const Node& name : required->items()) {
        if (name.kind() != NodeKind::string) return placed(under(path, "required"), name.wrong("a name"));
        if (needed.insert(name.text()).second) names.push_back(name.text());
      }
    }
    const bool open = others != nullptr ? *others != Node(false) : properties == nullptr;
    if (properties == nullptr && names.empty() && open && (others == nullptr || *others == Node(true)))
      return json_.object(from);
    const auto other = [&](State at) -> Result<State> {
      if (others == nullptr) return json_.value(at);
      return builder_.call(at, rule_of(under(path, "additionalProperties"), *others));
    };
    // Before the first member, and behind one; a state that nothing leads to is as if it were not there.
    State none = gap_behind(builder_.text(from, "{")), some = builder_.state();
    std::unordered_set<std::string> known;
    const auto member = [&](std::string_view name, bool is_needed, auto&& text) -> Status {
      const State begin = builder_.state();
      builder_.skip(none, begin);
      builder_.skip(gap_behind(builder_.text(some, ",")), begin);
      const State end = TRY(text(json_.colon(builder_.text(begin, to_json(Node(name))))));
      const State next_none = builder_.state(), next_some = builder_.state();
      builder_.skip(end, next_some);
      if (!is_needed) {
        builder_.skip(none, next_none);
        builder_.skip(some, next_some);
      }
      none = next_none;
      some = next_some;
      known.emplace(name);
      return {};
    };
    if (properties != nullptr) {
      for (const Node::Entry& entry : properties->entries()) {
        TRY(member(entry.key, needed.contains(entry.key),
                   [&](State at) { return value(entry.value, under(under(path, "properties"), entry.key), at); }));
      }
    }
    for (const std::string& name : names) {
      if (known.contains(name)) continue;
      if (!open) return error(ErrorKind::invalid, "{}: '{}' is required and no property", path, name);
      TRY(member(name, true, other));
    }
    if (open) {
      const State begin = builder_.state();
      builder_.skip(none, begin);
      builder_.skip(gap_behind(builder_.text(some, ",")), begin);
      const std::vector<std::string> all(known.begin(), known.end());
      const State end = TRY(other(json_.colon(json_.other_name(begin, all))));
      const State next = builder_.state();
      builder_.skip(some, next);
      builder_.skip(end, next);
      builder_.skip(gap_behind(builder_.text(end, ",")), begin);
      some = next;
    }
    const std::array closing{none, gap_behind(some)};
    return builder_.text(builder_.joined(closing), "}");
  }

  const Node& root_;
  AutomatonBuilder& builder_;
  JsonRules& json_;
  ScalarSchemas scalars_;
  std::map<std::string, Rule> rules_;  // by place
  std::deque<Open> open_;
  SchemaChoice choice_;
};

JsonSchema::JsonSchema(const Node& schema, AutomatonBuilder& builder, JsonRules& json)
    : impl_(std::make_unique<Impl>(schema, builder, json)) {}
JsonSchema::~JsonSchema() = default;
Result<JsonSchema::Rule> JsonSchema::add() { return impl_->add(); }

}  // namespace systole::grammar
