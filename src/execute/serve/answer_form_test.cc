#include "execute/serve/answer_form.h"

#include <gtest/gtest.h>

#include "execute/data/testing/made_up_text.h"
#include "ground/base/document.h"

namespace systole {
namespace {

Result<AnswerForm> read(const std::string& fields) {
  const Node body = parse_json("{" + fields + "}", "request", {.depth = 64}).value();
  Fields reader(body);
  return read_answer_form(reader);
}
bool accepts(const AnswerForm& form, std::string_view text) {
  grammar::GrammarState state(grammar_of(form).value());
  return state.advance(text) && state.may_end();
}

TEST(AnswerForm, each_way_to_ask_is_read) {
  using Kind = AnswerForm::Kind;
  EXPECT_EQ(read("")->kind, Kind::text);
  EXPECT_EQ(read(R"("response_format": null)")->kind, Kind::text);
  EXPECT_EQ(read(R"("response_format": {"type": "text"})")->kind, Kind::text);
  EXPECT_EQ(read(R"("response_format": {"type": "json_object"})")->kind, Kind::object);
  EXPECT_EQ(read(R"("structured_outputs": {"json_object": true})")->kind, Kind::object);
  for (const char* asked : {R"("response_format": {"type": "json_schema", "json_schema": {"name": "n", "strict": true,
            "schema": {"type": "array", "items": {"type": "integer"}}}})",
                            R"("structured_outputs": {"json": {"type": "array", "items": {"type": "integer"}}})",
                            R"("guided_json": {"type": "array", "items": {"type": "integer"}})",
                            R"("guided_json": "{\"type\": \"array\", \"items\": {\"type\": \"integer\"}}")"}) {
    const Result<AnswerForm> form = read(asked);
    ASSERT_TRUE(form.ok()) << asked << form.error().message;
    EXPECT_TRUE(accepts(*form, "[1, 2]")) << asked;
    EXPECT_FALSE(accepts(*form, "[true]")) << asked;
  }
  for (const char* asked : {R"("guided_regex": "a+|b")", R"("structured_outputs": {"regex": "a+|b"})"}) {
    EXPECT_TRUE(accepts(read(asked).value(), "aa")) << asked;
    EXPECT_FALSE(accepts(read(asked).value(), "ab")) << asked;
  }
  for (const char* asked :
       {R"("guided_choice": ["yes", "no"])", R"("structured_outputs": {"choice": ["yes", "no"]})"}) {
    EXPECT_TRUE(accepts(read(asked).value(), "no")) << asked;
    EXPECT_FALSE(accepts(read(asked).value(), "n")) << asked;
  }
}

TEST(AnswerForm, what_is_wrong_is_named) {
  for (const auto& [asked, field, kind] : std::initializer_list<std::tuple<const char*, const char*, ErrorKind>>{
           {R"("response_format": "json")", "response_format", ErrorKind::invalid},
           {R"("response_format": {})", "response_format", ErrorKind::invalid},
           {R"("response_format": {"type": "xml"})", "response_format", ErrorKind::unsupported},
           {R"("response_format": {"type": "json_schema"})", "response_format", ErrorKind::invalid},
           {R"("response_format": {"type": "json_schema", "json_schema": {"name": "n"}})", "response_format",
            ErrorKind::invalid},
           {R"("response_format": {"type": "json_object", "odd": 1})", "response_format", ErrorKind::invalid},
           {R"("structured_outputs": {"grammar": "a"})", "structured_outputs", ErrorKind::unsupported},
           {R"("structured_outputs": {"json": {}, "regex": "a"})", "structured_outputs", ErrorKind::invalid},
           {R"("structured_outputs": {})", "structured_outputs", ErrorKind::invalid},
           {R"("guided_json": "{")", "guided_json", ErrorKind::invalid},
           {R"("guided_regex": 1)", "guided_regex", ErrorKind::invalid},
           {R"("guided_choice": [])", "guided_choice", ErrorKind::invalid},
           {R"("guided_choice": ["a", ""])", "guided_choice", ErrorKind::invalid},
           {R"("guided_regex": "a", "response_format": {"type": "json_object"})", "guided_regex",
            ErrorKind::invalid}}) {
    const Result<AnswerForm> form = read(asked);
    ASSERT_FALSE(form.ok()) << asked;
    EXPECT_EQ(form.error().key, field) << form.error().message;
    EXPECT_EQ(form.error().kind, kind) << asked << form.error().message;
  }
  const Result<grammar::Grammar> unread =
      grammar_of(read(R"("guided_json": {"items": {"uniqueItems": true}})").value());
  ASSERT_FALSE(unread.ok());
  EXPECT_EQ(unread.error().key, "guided_json");
  const Result<grammar::Grammar> large = grammar_of(read(R"("guided_regex": "(a|b)*a(a|b){40}")").value());
  ASSERT_FALSE(large.ok());
  EXPECT_EQ(large.error().kind, ErrorKind::invalid) << large.error().message;
  EXPECT_EQ(unread.error().message, "guided_json: #/items: the keyword 'uniqueItems' is not supported");
}

TEST(AnswerForm, grammars_of_the_last_forms_are_kept) {
  const Tokenizer tokenizer = Tokenizer::train({.vocabulary = 400}, made_up_documents(500)).value();
  AnswerGrammars grammars(tokenizer, {});
  const auto of = [&](int i) {
    return grammars.masks_of(read(fmt::format(R"("guided_regex": "a{{{}}}")", i)).value());
  };
  const auto first = of(1).value();
  for (int i = 2; i <= static_cast<int>(AnswerGrammars::kMostKept); ++i) EXPECT_NE(of(i).value(), first);
  EXPECT_EQ(of(1).value(), first);
  of(100).value();
  EXPECT_EQ(of(1).value(), first) << "it was used after the others";
  for (int i = 200; i < 200 + static_cast<int>(AnswerGrammars::kMostKept); ++i) of(i).value();
  EXPECT_NE(of(1).value(), first);
  EXPECT_EQ(first->trie().vocabulary(), static_cast<std::size_t>(tokenizer.vocabulary()));
}

}  // namespace
}  // namespace systole
