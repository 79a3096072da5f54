#pragma once
// Schemas of strings and numbers as rules: a part of json_schema.h, and what its messages have in common.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "execute/serve/grammar/json_rules.h"

namespace systole::grammar {

// The error with its place, as "#/properties/a", before its message.
Error placed(const std::string& path, Error error);
// The place of a keyword or a name: "#" and "a/b" are "#/a~1b".
std::string under(const std::string& path, std::string_view key);

// Each adds the text of the values that are valid under a schema of its type, behind `from`, and returns its end.
// Errors: as JsonSchema::add, with the place.
class ScalarSchemas {
 public:
  using State = AutomatonBuilder::State;
  ScalarSchemas(AutomatonBuilder& builder, JsonRules& json) : builder_(builder), json_(json) {}

  Result<State> string(const Node& schema, const std::string& path, State from);
  Result<State> integer(const Node& schema, const std::string& path, State from);
  Result<State> number(const Node& schema, const std::string& path, State from);
  // A keyword that counts, such as minItems: 0 to `most`.
  static Result<std::optional<std::int64_t>> count_of(const Node& schema, const std::string& path, std::string_view key,
                                                      std::int64_t most);

 private:
  Result<State> counted_string(std::int64_t least, std::optional<std::int64_t> most, const std::string& path,
                               State from);
  static Result<std::optional<std::int64_t>> bound(const Node& schema, const std::string& path, bool lowest);

  AutomatonBuilder& builder_;
  JsonRules& json_;
};

}  // namespace systole::grammar
