#pragma once
// Questions about schemas that are answered before they become rules: what a $ref refers to, what type a value has, and
// whether no value can conform to two schemas.

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/document.h"

namespace systole::grammar {

struct Keyword {
  std::string_view name, type;  // the type it is about
};
constexpr std::array<Keyword, 15> kKeywords{{{"properties", "object"},
                                             {"required", "object"},
                                             {"additionalProperties", "object"},
                                             {"items", "array"},
                                             {"minItems", "array"},
                                             {"maxItems", "array"},
                                             {"minLength", "string"},
                                             {"maxLength", "string"},
                                             {"pattern", "string"},
                                             {"format", "string"},
                                             {"minimum", "number"},
                                             {"maximum", "number"},
                                             {"exclusiveMinimum", "number"},
                                             {"exclusiveMaximum", "number"},
                                             {"type", ""}}};
// Those that the keywords of a schema without `type` are about; each once.
std::vector<std::string_view> implied_types(const Node& schema);

struct Referred {
  std::string path;  // as written: "#/$defs/a"
  const Node* schema = nullptr;
};
// A $ref within the schema `root`: "#", or "#/" and a JSON pointer (RFC 6901). Errors: unsupported (elsewhere),
// invalid (no text, or nothing is there).
Result<Referred> find_referred(const Node& root, const Node& ref);

// Whether a value is of one of JSON Schema's types; an integer is a number.
bool has_type(const Node& value, std::span<const std::string_view> types);

// Compares the schemas of a oneOf. One for all of a schema, since its work is bounded as a whole.
class SchemaChoice {
 public:
  static constexpr std::size_t kMostChoices = 64;
  static constexpr std::int64_t kMostComparisons = 1 << 22;  // of values and names, in all

  explicit SchemaChoice(const Node& root) : root_(root) {}

  // Whether it is certain that no value that is made for one of these (json_schema.h) is valid under another: by their
  // types, by their const and enum, or by those of a property that both require. False also beyond the bounds.
  bool all_differ(std::span<const Node> schemas);

 private:
  const Node& resolved(const Node& schema);
  bool may_compare(std::size_t a, std::size_t b);
  bool have_none_in_common(std::span<const Node> a, std::span<const Node> b);
  bool differ(const Node& a, const Node& b);

  const Node& root_;
  std::map<std::string_view, const Node*> referred_;  // by $ref; null: nothing
  std::int64_t left_ = kMostComparisons;
};

}  // namespace systole::grammar
