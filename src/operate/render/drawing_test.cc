// A drawing is valid Mermaid flowchart syntax, whatever text its boxes have.
#include "operate/render/drawing.h"

#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <sstream>

#include "operate/render/testing/hostile.h"

namespace systole {
namespace {

// The first line that violates the flowchart grammar, of the subset used here; empty: none.
std::string wrong(const std::string& text) {
  static const std::string label = R"("(?:[^"#<>&`\\*_$%\n]|#[0-9a-z]+;)+")";
  static const std::regex comment(R"(%% [ -~]*)"), first("flowchart TB"), end("end");
  static const std::regex group(R"(subgraph (g\d+)\[)" + label + R"(\])");
  static const std::regex box(R"((b\d+)(?:\[)" + label + R"(\]|\[\()" + label + R"(\)\]|\(\[)" + label + R"(\]\)))");
  static const std::regex edge(R"(([bg]\d+) (?:-- )" + label + R"( )?--- ([bg]\d+))");
  std::set<std::string> ids;
  int depth = 0, number = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line); ++number) {
    const std::string words = line.substr(std::min(line.find_first_not_of(' '), line.size()));
    std::smatch found;
    const auto fresh = [&] { return ids.insert(found[1]).second; };
    bool good = false;
    if (number == 0)
      good = std::regex_match(words, comment);
    else if (number == 1)
      good = std::regex_match(words, first);
    else if (std::regex_match(words, end))
      good = --depth >= 0;
    else if (std::regex_match(words, found, group))
      good = fresh() && ++depth > 0;
    else if (std::regex_match(words, found, box))
      good = fresh();
    else if (std::regex_match(words, found, edge))
      good = depth == 0 && ids.contains(found[1]) && ids.contains(found[2]);
    if (!good) return std::to_string(number + 1) + ": " + line;
  }
  return depth == 0 ? "" : "a box is open";
}

std::string drawn(const std::string& text) {
  Drawing d(text);
  const std::string group = d.open(text);
  const std::string a = d.box(text), b = d.box(text, Drawing::Shape::cylinder);
  d.close();
  const std::string c = d.box(text, Drawing::Shape::stadium);
  d.join(group, c);
  d.join(a, b, text);
  return d.text();
}

TEST(Drawing, holds_to_the_grammar) {
  EXPECT_EQ(drawn("a b"), R"(%% a b
flowchart TB
  subgraph g0["a b"]
    b1["a b"]
    b2[("a b")]
  end
  b3(["a b"])
  g0 --- b3
  b1 -- "a b" --- b2
)");
  EXPECT_EQ(wrong(drawn("a b")), "");
}

TEST(Drawing, no_text_ends_its_box) {
  for (const std::string& text : hostile_texts()) {
    if (text.size() > 1000) continue;  // std::regex recurses as deep as the text is long
    EXPECT_TRUE(text.empty() || wrong(drawn(text)) == "") << text << "\n" << wrong(drawn(text));
  }
  EXPECT_EQ(wrong(drawn("a\"] --> x[\"b")), "");
}

TEST(Drawing, what_is_none_is_found) {
  EXPECT_EQ(wrong("%% x\nflowchart TB\n  b0[\"a\"b\"]\n"), "3:   b0[\"a\"b\"]");
  EXPECT_EQ(wrong("%% x\nflowchart TB\n  b0 --- b1\n"), "3:   b0 --- b1");
  EXPECT_EQ(wrong("%% x\nflowchart TB\n  subgraph g0[\"a\"]\n"), "a box is open");
}

}  // namespace
}  // namespace systole
