#include "execute/serve/grammar/regex.h"

#include <gtest/gtest.h>

#include "execute/serve/grammar/grammar.h"
#include "ground/base/utf8.h"

namespace systole::grammar {
namespace {

bool accepts(const Grammar& grammar, std::string_view text) {
  GrammarState state(grammar);
  return state.advance(text) && state.may_end();
}
bool matches(const char* pattern, std::string_view text) { return accepts(Grammar::of_regex(pattern).value(), text); }
// As the `pattern` of a string of JSON, which is written here as JSON has it.
bool matches_json(const char* pattern, std::string_view text) {
  const Node schema = Node::map({{"type", "string"}, {"pattern", pattern}});
  return accepts(Grammar::of_schema(schema).value(), text);
}
Error refused(const std::string& pattern) {
  const Result<Grammar> grammar = Grammar::of_regex(pattern);
  return grammar.ok() ? error(ErrorKind::internal, "accepted: {}", pattern.substr(0, 60)) : grammar.error();
}

TEST(Regex, matches_the_whole_text) {
  for (const auto& [pattern, yes, no] : std::initializer_list<std::array<const char*, 3>>{
           {"abc", "abc", "ab"},
           {"a|bc", "bc", "ac"},
           {"(?:a|b)c", "bc", "abc"},
           {"(?<name>a)b", "ab", "a"},
           {"a*", "", "b"},
           {"a+", "aaa", ""},
           {"ab?", "a", "abb"},
           {"a{2}", "aa", "aaa"},
           {"a{2,}", "aaaa", "a"},
           {"a{1,3}", "aaa", "aaaa"},
           {"(ab){2,3}", "abab", "aba"},
           {"(a*)*b", "aab", "aa"},
           {"a*?b", "aab", "a"},
           {"[a-c]", "b", "d"},
           {"[^a-c]", "d", "b"},
           {"[-a]", "-", "b"},
           {"[a-]", "-", "b"},
           {"[\\]\\\\]", "]", "a"},
           {"\\d\\D\\w\\W\\s\\S", "1ab- c", "aab- c"},
           {".", "\xC3\xA9", "\n"},
           {"[\xC3\xA9-\xC3\xAF]", "\xC3\xAA", "\xC3\xB0"},
           {"\\u00e9\\x41\\t", "\xC3\xA9\x41\t", "e"},
           {"[^x]", "\xF0\x9F\x98\x80", "\xF0\x9F\x98"},
           {"^a$|b", "a", "ab"},
           {"()", "", "a"},
           {"\\.\\$\\^", ".$^", "a"},
       }) {
    EXPECT_TRUE(matches(pattern, yes)) << pattern << ' ' << yes;
    EXPECT_FALSE(matches(pattern, no)) << pattern << ' ' << no;
  }
}

TEST(Regex, a_pattern_of_a_string_is_searched_and_escaped) {
  EXPECT_TRUE(matches_json("b", R"("abc")"));
  EXPECT_FALSE(matches_json("^b", R"("abc")"));
  EXPECT_TRUE(matches_json("^a|c$", R"("bc")"));
  EXPECT_FALSE(matches_json("^b$", R"("bb")"));
  EXPECT_TRUE(matches_json("^\"\\\\\n$", R"("\"\\\n")"));
  EXPECT_TRUE(matches_json("^\\x01$", "\"\\u0001\""));
  EXPECT_TRUE(matches_json("^\\x1f$", "\"\\u001F\""));
  EXPECT_FALSE(matches_json("^[^a]$", "\"\n\"")) << "it must be escaped";
  EXPECT_TRUE(matches_json("^[^a]$", "\"\\n\""));
}

TEST(Regex, every_code_point_has_its_bytes) {
  const Grammar any = Grammar::of_regex("[^a]").value();
  for (std::uint32_t code = 0; code <= 0x10FFFF; code += code < 0x3000 ? 1 : 97) {
    const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
    std::string text;
    append_utf8(text, code);
    EXPECT_EQ(accepts(any, text), code != 'a' && !surrogate) << code;
    if (!surrogate) { EXPECT_EQ(code_point_at(text), std::pair(code, text.size())); }
  }
  for (const char* wrong : {"\xC0\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\x80", "\xFF"})
    EXPECT_FALSE(accepts(any, wrong));
}

TEST(Regex, what_it_does_not_read_is_named) {
  for (const auto& [pattern, what] : std::initializer_list<std::pair<const char*, const char*>>{
           {"(?=a)", "look-ahead"},
           {"(?<!a)b", "look-behind"},
           {"(?i)a", "flags"},
           {"\\bword", "\\b"},
           {"(a)\\1", "\\1"},
           {"\\p{L}", "\\p"},
           {"a^b", "^ after"},
           {"(a$)", "$ within"},
           {"a++", "possessive"},
       }) {
    const Error error = refused(pattern);
    EXPECT_EQ(error.kind, ErrorKind::unsupported) << pattern << error.message;
    EXPECT_NE(error.message.find(what), error.message.npos) << error.message;
  }
  for (const char* wrong : {"(", ")", "[", "a{2", "a{3,2}", "a{-1}", "*", "a**", "[b-a]", "\\", "\\x1", "a$b", "\xFF",
                            "a{1,20000}", "[]", "\\ud800"})
    EXPECT_TRUE(refused(wrong).kind == ErrorKind::invalid || refused(wrong).kind == ErrorKind::unsupported) << wrong;
}

TEST(Regex, hostile_patterns_are_refused_soon) {
  for (const char* bomb : {"((((a{1,1000}){1,1000}){1,1000}){1,1000})", "((((){1000}){1000}){1000}){1000}",
                           "(a|b)*a(a|b){30}", "(.{0,100}){0,100}", "(a?){10000}(a?){10000}", "(x+x+)+y{9999}{9}"}) {
    const Error error = refused(bomb);
    EXPECT_TRUE(error.kind == ErrorKind::does_not_fit || error.kind == ErrorKind::invalid) << bomb << error.message;
  }
  EXPECT_EQ(refused(std::string(5000, '(')).kind, ErrorKind::invalid);
  EXPECT_EQ(refused(std::string(Regex::kMostText + 1, 'a')).kind, ErrorKind::invalid);
  EXPECT_TRUE(matches("(a|b)*a(a|b){8}", "aaaaaaaaa"));
}

}  // namespace
}  // namespace systole::grammar
