// Parsed words equal what a shell passes to the program, apart from expansions; compared with dash.
#include "operate/import/shell_words.h"

#include <gtest/gtest.h>

#include "ground/process/capture.h"
#include "operate/render/quote.h"
#include "operate/render/testing/hostile.h"

namespace systole {
namespace {

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> all;
  for (const ShellCommand& command : read_shell(text, "f").value()) {
    if (!all.empty()) all.push_back("|" + command.before);
    for (const ShellWord& word : command.words) all.push_back(word.text);
  }
  return all;
}

using Words = std::vector<std::string>;

TEST(ShellWords, are_those_that_a_shell_gives) {
  for (const std::string line :
       {R"(a b  c)", R"(a 'b c' "d e" f\ g)", R"("a\"b" 'c\d' "e\f" g\\h)", "a \\\n  b # c", "''  \"\"", R"(a"b"'c'd)",
        R"(x=1 y)", R"(-- -n --a='b c')", R"("\$x" '\$y')", "a\tb", "a#b"}) {
    Command command;
    command.argv = {"dash", "-c", "for w in " + line + "\ndo printf '%s\\0' \"$w\"\ndone"};
    std::string want;
    const ShellCommand read = read_shell("run " + line, "f").value()[0];
    for (std::size_t w = 1; w < read.words.size(); ++w) want += read.words[w].text + std::string(1, '\0');
    EXPECT_EQ(run_captured(command, {}).value().out, want) << line;
  }
}

TEST(ShellWords, take_back_what_quoting_wrote) {
  for (const std::string& text : hostile_texts()) {
    const std::vector<ShellCommand> read = read_shell("python3 " + shell_word(text), "f").value();
    ASSERT_EQ(read.size(), 1u) << text;
    ASSERT_EQ(read[0].words.size(), 2u) << text;
    EXPECT_EQ(read[0].words[1].text, text);
    EXPECT_FALSE(read[0].words[1].expands) << text;
  }
}

TEST(ShellWords, know_lists_and_where_things_go) {
  EXPECT_EQ(words("a b\nc; d && e || f | g & h"),
            (Words{"a", "b", "|", "c", "|;", "d", "|&&", "e", "|||", "f", "||", "g", "|&", "h"}));
  EXPECT_EQ(words("a &&\n  b"), (Words{"a", "|&&", "b"}));
  EXPECT_EQ(words("$ a b"), (Words{"a", "b"}));
  const std::vector<ShellCommand> read = read_shell("X=1 Y=\"a b\" run z > log 2>&1 &\nwait", "f").value();
  EXPECT_EQ(read[0].assignments[1].second.text, "a b");
  EXPECT_EQ(read[0].assignments[0].first, "X");
  EXPECT_EQ(read[0].redirections, (Words{"> log", "2>&1"}));
  EXPECT_TRUE(read[0].behind);
  EXPECT_EQ(read[1].line, 2);
}

TEST(ShellWords, see_what_a_shell_would_put_in) {
  for (const char* word :
       {"$X", "\"$X\"", "a${X:-b}c", "$(date)", "`date`", "$((1 + 2))", "*.py", "~/x", "\"$(f \")\")\""}) {
    const std::vector<ShellCommand> read = read_shell(std::string("run ") + word + " z", "f").value();
    ASSERT_EQ(read[0].words.size(), 3u) << word;
    EXPECT_TRUE(read[0].words[1].expands) << word;
    EXPECT_EQ(read[0].words[1].raw, word);
  }
  for (const char* word : {"'$X'", "\\$X", "a~", "$", "\"\\$X\"", "'*'"})
    EXPECT_FALSE(read_shell(std::string("run ") + word, "f").value()[0].words[1].expands) << word;
}

TEST(ShellWords, refuse_what_is_a_program) {
  const auto refused = [](std::string_view text) {
    const Result<std::vector<ShellCommand>> read = read_shell(text, "f");
    return read.ok() ? "" : to_string(read.error().where) + ": " + read.error().message;
  };
  for (const char* text : {"if true; then a; fi", "for i in 1 2; do a; done", "f() { a; }", "(a; b)",
                           "cat <<EOF\nx\nEOF", "[[ -e x ]] && a", "eval x", "a $'\\n'", "! a"})
    EXPECT_NE(refused(text), "") << text;
  EXPECT_EQ(refused("a\nb\n  while c"), "f:3:1: 'while' makes it a program of the shell's, which is not run here");
  EXPECT_EQ(refused("a\nb 'c\nd"), "f:2:1: the quote ' does not end");
  for (const char* text : {"a \"b", "a $(b", "a `b", "a ${b", "a >"}) EXPECT_NE(refused(text), "") << text;
}

}  // namespace
}  // namespace systole
