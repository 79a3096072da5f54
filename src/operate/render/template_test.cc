#include "operate/render/template.h"

#include <gtest/gtest.h>

#include "operate/render/testing/hostile.h"

namespace systole {
namespace {

TEST(Template, holes_are_filled_and_empty_ones_taken_away) {
  const Node made =
      fill("a: $a\nb: { c: $none, d: { e: $none } }\nlist: [1, $none, $a]\n", {{"a", 2}, {"none", Node()}});
  EXPECT_EQ(to_json(made), R"({"a":2,"list":[1,2]})");
}

TEST(Template, no_value_changes_what_is_around_it) {
  for (const std::string& text : hostile_texts()) {
    const Node made = fill("a: $a\nb: $b\n", {{"a", text}, {"b", 1}});
    EXPECT_EQ(made, Node::map({{"a", text}, {"b", 1}}));
    EXPECT_EQ(parse_yaml(to_yaml(made), "f").value(), made);
  }
}

TEST(Template, a_value_that_looks_like_a_hole_is_text) {
  EXPECT_EQ(fill("a: $a\n", {{"a", "$b"}}), Node::map({{"a", "$b"}}));
}

TEST(Template, a_hole_without_value_and_a_value_without_hole_are_our_fault) {
  EXPECT_THROW(fill("a: $b\n", {}), Failure);
  EXPECT_THROW(fill("a: 1\n", {{"b", 1}}), Failure);
}

}  // namespace
}  // namespace systole
