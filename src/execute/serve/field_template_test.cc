#include "execute/serve/field_template.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

Result<std::string> filled(std::string_view text, std::string_view row) {
  return FieldTemplate::parse(text).value().fill(parse_json(row, "row").value());
}

TEST(FieldTemplate, takes_fields_of_rows_and_leaves_double_braces) {
  constexpr const char* kRow = R"({"a": "x {b}", "n": 1.50, "in": {"b": true}, "two words": "y"})";
  EXPECT_EQ(filled("{a}-{n}-{in.b}{n} {{a}} }}{{", kRow).value(), "x {b}-1.50-true1.50 {a} }{");
  EXPECT_EQ(filled("{{{n}}} {{}}", kRow).value(), "{1.50} {}");
  EXPECT_EQ(filled("{two words}", kRow).value(), "y");
  EXPECT_EQ(filled("no field", kRow).value(), "no field");
  EXPECT_EQ(filled("", kRow).value(), "");
  EXPECT_EQ(FieldTemplate().fill(Node::map()).value(), "");
  EXPECT_EQ(FieldTemplate::of_field("a.b{").fill(Node::map({{"a.b{", "z"}})).value(), "z");
}

TEST(FieldTemplate, a_name_with_a_dot_is_a_field_before_it_is_a_path) {
  EXPECT_EQ(filled("{a.b.c}", R"({"a": {"b.c": 1}, "a.b.c": 2})").value(), "2");
  EXPECT_EQ(filled("{a.b.c}", R"({"a": {"b.c": 1, "b": {"c": 3}}})").value(), "1");
  EXPECT_EQ(filled("{a.b.c}", R"({"a": {"b": {"c": 3}}})").value(), "3");
}

TEST(FieldTemplate, names_its_fields_once) {
  EXPECT_EQ(FieldTemplate::parse("{a}{b.c} d {a}").value().fields(), (std::vector<std::string>{"a", "b.c"}));
}

TEST(FieldTemplate, says_which_field_a_row_has_not) {
  const Error none = filled("{question}", R"({"questoin": "x"})").error();
  EXPECT_EQ(none.kind, ErrorKind::invalid);
  EXPECT_EQ(none.code, ErrorCode::missing_key);
  EXPECT_EQ(none.key, "question");
  EXPECT_EQ(none.hint, "did you mean 'questoin'?");
  const Error within = filled("{in.question}", R"({"in": {"questoin": "x"}})").error();
  EXPECT_EQ(within.key, "in.question");
  EXPECT_EQ(within.hint, "did you mean 'questoin'?");
  EXPECT_EQ(filled("{a.b}", R"({"a": "x"})").error().code, ErrorCode::missing_key) << "no map";
  for (const char* row : {R"({"a": null})", R"({"a": ["x"]})", R"({"a": {"b": 1}})"})
    EXPECT_EQ(filled("{a}", row).error().key, "a") << row;
}

TEST(FieldTemplate, braces_have_mates_and_fields_have_names) {
  for (const char* wrong : {"{", "{a", "a {b", "}", "a}", "{a}}", "{}", "{a{b}", "{a\nb}"})
    EXPECT_EQ(FieldTemplate::parse(wrong).error().kind, ErrorKind::invalid) << wrong;
}

TEST(FieldTemplate, the_value_of_a_single_field_may_be_a_list) {
  const Node row = parse_json(R"({"l": [1]})", "row").value();
  EXPECT_EQ((*FieldTemplate::parse("{l}").value().value(row))->items().size(), 1U);
  EXPECT_EQ(*FieldTemplate::parse(" {l}").value().value(row), nullptr);
  EXPECT_EQ(FieldTemplate::parse("{m}").value().value(row).error().code, ErrorCode::missing_key);
}

}  // namespace
}  // namespace systole
