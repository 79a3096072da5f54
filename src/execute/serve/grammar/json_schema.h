#pragma once
// JSON Schema (2020-12) as rules of an automaton, so that each text that conforms to them is valid under the schema.
// Source: https://json-schema.org/draft/2020-12/json-schema-validation (2026-11), and for the order of properties
// https://platform.openai.com/docs/guides/structured-outputs (2026-11): they come in the schema's order.
//
// Read are: type, enum, const, anyOf, oneOf (where at most one of each two can hold), allOf of one, $ref within the
// schema, also in circles; properties, required, additionalProperties; items, minItems, maxItems; minLength, maxLength,
// pattern (regex.h), format date, time, date-time (each month with 31 days) and uuid; minimum, maximum and their
// exclusive forms of integers, and minimum 0 of numbers. Annotations such as title and description change nothing. Any
// other keyword is refused by name.
//
// Not all that is valid conforms: an object with `properties` has others only if additionalProperties says so, keywords
// of one type without `type` mean that type, and texts are written as json_rules.h says.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "execute/serve/grammar/json_rules.h"

namespace systole::grammar {

class JsonSchema {
 public:
  using State = AutomatonBuilder::State;
  using Rule = AutomatonBuilder::Rule;
  static constexpr std::int64_t kMostNodes = 20'000;  // keywords and values of a schema

  // `schema` is the root of its $refs, and must outlive this.
  JsonSchema(const Node& schema, AutomatonBuilder& builder, JsonRules& json);
  ~JsonSchema();

  // The rule of the whole. Errors: unsupported (a keyword or a combination), invalid (a wrong value of one; no value
  // can conform), does_not_fit; each with the place, as "#/properties/a".
  Result<Rule> add();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace systole::grammar
