#include "execute/serve/grammar/json_schema.h"

#include <gtest/gtest.h>

#include "execute/serve/grammar/grammar.h"
#include "execute/serve/grammar/testing/valid.h"

namespace systole::grammar {
namespace {

Node json(std::string_view text) { return parse_json(text, "test").value(); }
Grammar grammar_of(std::string_view schema) { return Grammar::of_schema(json(schema)).value(); }
bool accepts(const Grammar& grammar, std::string_view text) {
  GrammarState state(grammar);
  return state.advance(text) && state.may_end();
}
Error refused(std::string_view schema) {
  const Result<Grammar> grammar = Grammar::of_schema(json(schema));
  return grammar.ok() ? error(ErrorKind::internal, "accepted: {}", schema.substr(0, 100)) : grammar.error();
}

struct Case {
  const char* schema;
  std::vector<const char*> accepted, refused;
};

TEST(JsonSchema, documents_are_accepted_and_refused) {
  const std::vector<Case> cases{
      {R"({"type": "null"})", {"null"}, {"nul", "nulll", " null", "0"}},
      {R"({"type": ["boolean", "null"]})", {"true", "false", "null"}, {"tru", "1"}},
      {R"({"type": "string"})",
       {R"("")", R"("a b")", R"("\n\"\\\/")", R"("\u00e9\ud83d\ude00")", "\"\xC3\xA9\""},
       {"\"", "a", "\"\n\"", R"("\x")", R"("\ud83d")", "\"\xFF\"", R"("a"b")"}},
      {R"({"type": "string", "minLength": 2, "maxLength": 3})",
       {R"("ab")", R"("abc")", "\"\xC3\xA9\xC3\xA9\"", R"("\n\ud83d\ude00")"},
       {R"("a")", R"("abcd")", "\"\xC3\xA9\""}},
      {R"({"type": "string", "minLength": 1})", {R"("a")", R"("abcdef")"}, {R"("")"}},
      {R"({"type": "string", "format": "date"})", {R"("2026-11-27")"}, {R"("2026-13-27")", R"("26-11-27")"}},
      {R"({"type": "string", "format": "date-time"})", {R"("2026-11-27T10:00:00.5Z")"}, {R"("2026-11-27")"}},
      {R"({"type": "integer"})", {"0", "-7", "1234567890"}, {"", "-", "-0", "01", "1.5", "1e3", "12345678901234567"}},
      {R"({"type": "integer", "minimum": -12, "maximum": 305})",
       {"-12", "-1", "0", "9", "10", "99", "300", "305"},
       {"-13", "-20", "306", "310", "1000", "-", "00"}},
      {R"({"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 10})", {"1", "9"}, {"0", "10", "-1"}},
      {R"({"type": "integer", "maximum": -5})", {"-5", "-17"}, {"-4", "0", "5"}},
      {R"({"type": "number"})",
       {"0", "-0.5", "12.25", "1e5", "1E-07", "-3.5e+10"},
       {"", ".5", "1.", "01", "+1", "1e", "1e100", "NaN"}},
      {R"({"type": "number", "minimum": 0})", {"0", "0.5"}, {"-0.5"}},
      {R"({"enum": ["a", 1, null, {"x": [1, 2]}]})",
       {R"("a")", "1", "null", R"({"x":[1,2]})", R"({"x": [1, 2]})"},
       {R"("b")", "2", R"({"x":[1]})"}},
      {R"({"type": "string", "enum": ["a", 1]})", {R"("a")"}, {"1"}},
      {R"({"const": "a\"b"})", {R"("a\"b")"}, {R"("ab")"}},
      {R"({"type": "array", "items": {"type": "integer"}})",
       {"[]", "[1]", "[1,2]", "[1, 2]", "[\n  1,\n  2\n]", "[ ]"},
       {"[", "[1", "[1,]", "[,1]", "[1 2]", "[true]", "[1,  2]"}},
      {R"({"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 3})",
       {"[1,2]", "[1,2,3]"},
       {"[]", "[1]", "[1,2,3,4]"}},
      {R"({"type": "array", "minItems": 2})", {"[1,null]", "[1,2,3]"}, {"[]", "[1]"}},
      {R"({"type": "array", "maxItems": 0})", {"[]"}, {"[1]"}},
      {R"({"type": "object"})",
       {"{}", R"({"a": {"b": [1, {}]}})", R"({"a":1,"b":"c"})"},
       {"{", R"({"a"})", R"({a: 1})", R"({"a": 1,})", "[]"}},
      {R"({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}, "c": true},
           "required": ["b"], "additionalProperties": false})",
       {R"({"b": "x"})", R"({"a": 1, "b": "x"})", R"({"a":1,"b":"","c":[1]})", "{\n  \"b\": \"x\"\n}"},
       {"{}", R"({"a": 1})", R"({"b": "x", "a": 1})", R"({"b": 1})", R"({"b": "x", "d": 1})", R"({,"b": "x"})",
        R"({"b": "x",})", R"({"b": "x" "c": 1})"}},
      {R"({"properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}})",
       {"{}", R"({"a":1})", R"({"b":1})", R"({"a":1,"b":2})"},
       {R"({"c":1})", R"({"a":1"b":2})", "{,}"}},
      {R"({"properties": {"ab": {"type": "integer"}, "a": {"type": "integer"}},
           "additionalProperties": {"type": "boolean"}})",
       {"{}", R"({"ab":1,"a":2,"abc":true})", R"({"b":true,"x":false})", R"({"ax":true})", "{\"a\xC3\xA9\":true}"},
       {R"({"ab":true})", R"({"a":true})", R"({"b":1})", R"({"b":true,"ab":1})"}},
      {R"({"type": "object", "required": ["x"], "additionalProperties": {"type": "null"}})",
       {R"({"x":null})", R"({"x":null,"y":null})"},
       {"{}", R"({"y":null})", R"({"x":null,"x":null})"}},
      {R"({"anyOf": [{"type": "integer"}, {"type": "array", "items": {"$ref": "#"}}]})",
       {"1", "[]", "[1,[2,[]]]"},
       {"true", "[true]", "[[]"}},
      {R"({"$ref": "#/$defs/node", "$defs": {"node": {"type": "object", "properties": {
             "value": {"type": "integer"}, "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}},
           "required": ["value", "next"], "additionalProperties": false}}})",
       {R"({"value": 1, "next": null})", R"({"value": 1, "next": {"value": 2, "next": null}})"},
       {R"({"value": 1})", R"({"value": 1, "next": {"value": 2}})", R"({"value": 1, "next": null)"}},
      {R"({"oneOf": [{"properties": {"kind": {"const": "a"}, "x": {"type": "integer"}}, "required": ["kind", "x"]},
                     {"properties": {"kind": {"const": "b"}}, "required": ["kind"]}]})",
       {R"({"kind": "a", "x": 1})", R"({"kind": "b"})"},
       {R"({"kind": "a"})", R"({"kind": "b", "x": 1})"}},
      {R"({"allOf": [{"type": "integer"}], "title": "t", "description": "d", "default": 1})", {"1"}, {"true"}},
      {"true", {"1", "{}", R"([{"a":"b"}])"}, {"", "x"}},
      {R"({"anyOf": [false, {"type": "null"}]})", {"null"}, {"1"}},
  };
  for (const Case& each : cases) {
    const Grammar grammar = grammar_of(each.schema);
    const Node schema = json(each.schema);
    for (const char* text : each.accepted) {
      EXPECT_TRUE(accepts(grammar, text)) << each.schema << '\n' << text;
      EXPECT_TRUE(is_valid(schema, schema, json(text))) << each.schema << '\n' << text;
    }
    for (const char* text : each.refused) EXPECT_FALSE(accepts(grammar, text)) << each.schema << '\n' << text;
  }
}

TEST(JsonSchema, integers_lie_exactly_between_their_bounds) {
  for (const auto& [least, most] : {std::pair{-120, 75}, {0, 0}, {9, 11}, {-3, -1}, {99, 1000}, {-1000, -999}}) {
    const Grammar grammar =
        Grammar::of_schema(Node::map({{"type", "integer"}, {"minimum", least}, {"maximum", most}})).value();
    for (int i = -1100; i <= 1100; ++i)
      EXPECT_EQ(accepts(grammar, std::to_string(i)), least <= i && i <= most) << least << ' ' << most << ' ' << i;
  }
}

TEST(JsonSchema, what_it_does_not_read_is_named_with_its_place) {
  for (const auto& [schema, place, what] : std::initializer_list<std::array<const char*, 3>>{
           {R"({"type": "array", "uniqueItems": true})", "#", "uniqueItems"},
           {R"({"properties": {"a": {"not": {}}}})", "#/properties/a", "not"},
           {R"({"properties": {"a/b": {"multipleOf": 2}}})", "#/properties/a~1b", "multipleOf"},
           {R"({"items": {"type": "number", "maximum": 1}})", "#/items", "maximum"},
           {R"({"anyOf": [{"type": "number", "minimum": 1}]})", "#/anyOf/0", "minimum"},
           {R"({"$ref": "https://example.com/a"})", "#", "$ref"},
           {R"({"$ref": "#", "type": "object"})", "#", "beside"},
           {R"({"oneOf": [{"type": "integer"}, {"type": "number"}]})", "#/oneOf", "more than one"},
           {R"({"oneOf": [{"properties": {}}, {"type": "string"}]})", "#/oneOf", "more than one"},
           {R"({"allOf": [{}, {}]})", "#/allOf", "more than one"},
           {R"({"type": "string", "format": "email"})", "#/format", "email"},
           {R"({"type": "string", "pattern": "a", "minLength": 2})", "#", "only one"},
           {R"x({"type": "string", "pattern": "(?=a)"})x", "#/pattern", "look-ahead"},
           {R"({"patternProperties": {"a": {}}})", "#", "patternProperties"},
       }) {
    const Error error = refused(schema);
    EXPECT_EQ(error.kind, ErrorKind::unsupported) << schema << error.message;
    EXPECT_TRUE(error.message.starts_with(std::string(place) + ":")) << error.message;
    EXPECT_NE(error.message.find(what), error.message.npos) << error.message;
  }
  for (const char* wrong :
       {R"(1)", R"({"type": "text"})", R"({"type": []})", R"({"enum": []})", R"({"required": "a"})",
        R"({"properties": {}, "required": ["a"]})", R"({"$ref": "#/$defs/a"})", R"({"minItems": -1})",
        R"({"minItems": 3, "maxItems": 2})", R"({"type": "integer", "minimum": 2, "maximum": 1})",
        R"({"type": "integer", "enum": ["a"]})", R"({"anyOf": []})", "false", R"({"$ref": "#"})",
        R"({"anyOf": [{"$ref": "#"}, {"type": "null"}]})",
        R"({"properties": {"a": {"$ref": "#"}}, "required": ["a"]})"})
    EXPECT_EQ(refused(wrong).kind, ErrorKind::invalid) << wrong << refused(wrong).message;
}

TEST(JsonSchema, hostile_schemas_are_refused_soon) {
  std::string deep = R"({"type": "null"})", wide = "1", doubled = R"({"type": "string", "maxLength": 50})";
  for (int i = 0; i < 8; ++i) deep = R"({"type": "array", "minItems": 100, "maxItems": 200, "items": )" + deep + "}";
  for (int i = 0; i < 25'000; ++i) wide += ",1";
  for (int i = 0; i < 12; ++i) doubled = R"({"anyOf": [)" + doubled + "," + doubled + "]}";
  for (const std::string& bomb :
       {R"({"enum": [)" + wide + "]}", doubled, std::string(R"({"type": "string", "maxLength": 1000000000})"),
        std::string(R"({"type": "array", "maxItems": 1000000000})"),
        std::string(R"({"type": "string", "pattern": "(a|b)*a(a|b){40}"})")})
    EXPECT_EQ(refused(bomb).kind, ErrorKind::does_not_fit) << bomb.substr(0, 80) << refused(bomb).message;
  EXPECT_TRUE(Grammar::of_schema(json(deep)).ok()) << "its items are rules of their own";
}

TEST(JsonSchema, schemas_that_take_long_to_compare_are_refused) {
  std::string values, properties, choices, names = R"("k")";
  for (int i = 0; i < 120; ++i) values += fmt::format(R"("v{}", )", i);
  for (int i = 0; i < 40; ++i) {
    properties += fmt::format(R"("p{}": {{"$ref": "#/$defs/e"}}, )", i);
    names += fmt::format(R"(, "p{}")", i);
  }
  const auto schema = [&](int count) {
    choices.clear();
    for (int i = 0; i < count; ++i)
      choices += fmt::format(R"({}{{"properties": {{{}"k": {{"const": "c{}"}}}}, "required": [{}]}})",
                             i > 0 ? ", " : "", properties, i, names);
    return fmt::format(R"({{"oneOf": [{}], "$defs": {{"e": {{"enum": [{}"w"]}}}}}})", choices, values);
  };
  EXPECT_TRUE(Grammar::of_schema(json(schema(2))).ok());
  EXPECT_EQ(refused(schema(6)).kind, ErrorKind::unsupported) << "each two differ, but in the last of many properties";
}

TEST(JsonSchema, nesting_has_a_bound_and_keeps_to_it) {
  const Grammar grammar = Grammar::of_object();
  GrammarState state(grammar);
  int depth = 0;
  while (depth < 1000 && state.advance(depth == 0 ? "{" : "\"a\":{")) ++depth;
  EXPECT_GT(depth, 40);
  EXPECT_LT(depth, 100);
  for (int i = 0; i < depth; ++i) EXPECT_TRUE(state.advance("}"));
  EXPECT_TRUE(state.must_end());
}

TEST(JsonSchema, what_must_end_and_what_may) {
  GrammarState object(Grammar::of_object());
  EXPECT_FALSE(object.may_end());
  EXPECT_TRUE(object.advance("{}"));
  EXPECT_TRUE(object.must_end());
  EXPECT_FALSE(object.advance(" ")) << "nothing follows";
  EXPECT_TRUE(object.must_end()) << "and it is as before";
  GrammarState number(grammar_of(R"({"type": "integer"})"));
  EXPECT_TRUE(number.advance("1"));
  EXPECT_TRUE(number.may_end());
  EXPECT_FALSE(number.must_end());
}

}  // namespace
}  // namespace systole::grammar
