#include "operate/runs/run_output.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

// Returns the scripted pieces in order, then nothing.
struct ScriptedOutput : Output {
  explicit ScriptedOutput(std::vector<std::vector<OutputPiece>> its_turns) : turns(std::move(its_turns)) {}
  Result<std::vector<OutputPiece>> more() override {
    return at < turns.size() ? turns[at++] : std::vector<OutputPiece>();
  }
  std::vector<std::vector<OutputPiece>> turns;
  std::size_t at = 0;
};

OutputPiece piece(const std::string& source, const std::string& text) {
  OutputPiece made;
  made.source = source;
  made.text = text;
  return made;
}

TEST(OutputLines, a_line_in_parts_is_given_once_it_is_whole) {
  OutputLines lines(false);
  EXPECT_EQ(lines.of({piece("0", "step ")}, false), "");
  EXPECT_EQ(lines.of({piece("0", "1\nstep 2")}, false), "step 1\n");
  EXPECT_EQ(lines.of({}, true), "step 2");
  EXPECT_EQ(lines.of({}, true), "") << "each byte once";
}

TEST(OutputLines, of_several_jobs_each_line_begins_with_its_own) {
  OutputLines lines(true);
  EXPECT_EQ(lines.of({piece("a", "1\n2\n3"), piece("b", "4\n")}, false), "a: 1\na: 2\nb: 4\n");
  EXPECT_EQ(lines.of({piece("b", "5")}, true), "a: 3b: 5");
}

TEST(WholeOutput, is_its_last_lines_where_they_are_asked_for) {
  for (const auto& [last, text] : {std::pair(0, "1\n2\n3\n"), {2, "2\n3\n"}, {9, "1\n2\n3\n"}}) {
    ScriptedOutput output({{piece("0", "1\n2\n3\n")}});
    EXPECT_EQ(whole_output(output, false, last), text) << last;
  }
}

TEST(WholeOutput, what_is_much_is_asked_for_until_little_comes) {
  const std::string much(std::size_t{1} << 20, 'x');
  ScriptedOutput output({{piece("0", much)}, {piece("0", "\nend\n")}, {piece("0", "later\n")}});
  EXPECT_EQ(whole_output(output, false, 1), "end\n");
  EXPECT_EQ(output.at, 2U);
}

}  // namespace
}  // namespace systole
