#include "execute/serve/tool_calls.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "ground/base/testing/places.h"
#include "ground/base/text_file.h"

namespace systole {
namespace {

constexpr const char* kTools =
    R"("tools": [{"type": "function", "function": {"name": "weather", "description": "d", "parameters": {"type": "object",
         "properties": {"city": {"enum": ["Bern", "Rome"]}, "days": {"type": "integer", "minimum": 1, "maximum": 9}},
         "required": ["city"], "additionalProperties": false}}}, {"type": "function", "function": {"name": "now"}}])";

Result<ToolUse> read(const std::string& more) {
  const Node body = parse_json("{" + std::string(kTools) + more + "}", "request", {.depth = 64}).value();
  Fields fields(body);
  return read_tool_use(fields);
}
ToolUse use(const std::string& more = "") { return read(more).value(); }

TEST(ToolCalls, what_a_request_says_of_tools) {
  using Choice = ToolUse::Choice;
  EXPECT_EQ(use().choice, Choice::automatic);
  EXPECT_EQ(use(R"(, "tool_choice": "auto")").choice, Choice::automatic);
  EXPECT_EQ(use(R"(, "tool_choice": "none")").choice, Choice::none);
  EXPECT_EQ(use(R"(, "tool_choice": "required")").choice, Choice::required);
  const ToolUse named = use(R"(, "tool_choice": {"type": "function", "function": {"name": "now"}})");
  EXPECT_EQ(named.choice, Choice::named);
  EXPECT_EQ(named.name, "now");
  EXPECT_TRUE(named.parallel);
  EXPECT_FALSE(use(R"(, "parallel_tool_calls": false)").parallel);
  for (const char* wrong :
       {R"("tool_choice": "some")", R"("tool_choice": 1)", R"("tool_choice": {"function": {"name": "other"}})",
        R"("tool_choice": {})", R"("parallel_tool_calls": 1)"}) {
    const Result<ToolUse> refused = read(std::string(", ") + wrong);
    ASSERT_FALSE(refused.ok()) << wrong;
    EXPECT_NE(std::string(wrong).find("\"" + refused.error().key + "\""), std::string::npos) << refused.error().message;
  }
  for (const char* wrong :
       {R"({"tools": 1})", R"({"tools": [1]})", R"({"tools": [{"type": "web"}]})",
        R"({"tools": [{"type": "function"}]})", R"({"tools": [{"type": "function", "function": {"name": ""}}]})",
        R"({"tools": [{"type": "function", "function": {"name": "f", "parameters": 1}}]})"}) {
    const Node body = parse_json(wrong, "request").value();
    Fields fields(body);
    EXPECT_EQ(read_tool_use(fields).error().key, "tools") << wrong;
  }
  const Node none = parse_json(R"({"tool_choice": "required"})", "request").value();
  Fields fields(none);
  EXPECT_EQ(read_tool_use(fields).error().key, "tool_choice");
}

TEST(ToolCalls, the_format_is_that_of_the_chat_template) {
  EXPECT_EQ(tool_format_of("{{ '<tool_call>\\n' }}{{ tool_call | tojson }}"), ToolFormat::hermes);
  EXPECT_EQ(tool_format_of("<tool_call>\n<function=f>"), ToolFormat::none);
  EXPECT_EQ(tool_format_of("{{ \"[TOOL_CALLS] [\" }}"), ToolFormat::mistral);
  EXPECT_EQ(tool_format_of("[TOOL_CALLS]f[ARGS]{}"), ToolFormat::none);
  EXPECT_EQ(tool_format_of("{{ m.content }}"), ToolFormat::none);
  const std::filesystem::path published = SYSTOLE_SOURCE_DIR "/fuzz/corpus/chat_template_fuzz";
  for (const auto& [name, format] : {std::pair{"hermes", ToolFormat::hermes},
                                     {"mistral", ToolFormat::mistral},
                                     {"llama_3_1", ToolFormat::llama},
                                     {"gemma_3", ToolFormat::none}})
    EXPECT_EQ(tool_format_of(read_text_file((published / name).string()).value()), format) << name;
}

// The answer a piece at a time; what is given out before the end is text.
ToolCallText::Rest divided(ToolFormat format, std::string_view answer, std::size_t piece,
                           const std::string& more = "") {
  ToolCallText text(format, use(more));
  std::string before;
  for (std::size_t at = 0; at < answer.size(); at += piece) before += text.add(answer.substr(at, piece));
  ToolCallText::Rest rest = text.rest();
  rest.text.insert(0, before);
  return rest;
}

struct Case {
  ToolFormat format;
  std::string answer, text;
  std::vector<ToolCall> calls;
};

TEST(ToolCalls, answers_are_divided_into_text_and_calls) {
  const ToolCall bern{"", "weather", R"({"city":"Bern","days":2})"}, now{"", "now", "{}"};
  const std::string one = R"({"name": "weather", "arguments": {"city": "Bern", "days": 2}})";
  const std::string other = R"({"name": "now", "arguments": {}})";
  const std::string of_llama = R"({"name": "weather", "parameters": {"city": "Bern", "days": 2}})";
  const std::vector<Case> cases{
      {ToolFormat::hermes, "<tool_call>\n" + one + "\n</tool_call>", "", {bern}},
      {ToolFormat::hermes, "I look.\n<tool_call>\n" + one + "\n</tool_call>", "I look.", {bern}},
      {ToolFormat::hermes,
       "<tool_call>" + one + "</tool_call>\n<tool_call>\n" + other + "\n</tool_call>\n",
       "",
       {bern, now}},
      {ToolFormat::hermes, "<tool_call>\n" + one, "", {bern}},
      {ToolFormat::hermes, "<tool_call>\n" + one.substr(0, 30), "<tool_call>\n" + one.substr(0, 30), {}},
      {ToolFormat::hermes, "a < b <tool> c ", "a < b <tool> c ", {}},
      {ToolFormat::hermes, one, one, {}},
      {ToolFormat::mistral, "[TOOL_CALLS] [" + one + ", " + other + "]", "", {bern, now}},
      {ToolFormat::mistral, "[TOOL_CALLS][" + one + "]", "", {bern}},
      {ToolFormat::mistral, "[TOOL] [1, 2]", "[TOOL] [1, 2]", {}},
      {ToolFormat::mistral, "[TOOL_CALLS] []", "[TOOL_CALLS] []", {}},
      {ToolFormat::llama, of_llama, "", {bern}},
      {ToolFormat::llama, "\n" + of_llama + "\n", "", {bern}},
      {ToolFormat::llama, "<|python_tag|>" + of_llama, "", {bern}},
      {ToolFormat::llama, "See: " + of_llama, "See: " + of_llama, {}},
      {ToolFormat::llama, R"({"name": "Bern", "parameters": {}})", R"({"name": "Bern", "parameters": {}})", {}},
      {ToolFormat::llama, "{1} is a set", "{1} is a set", {}},
      {ToolFormat::none, "<tool_call>\n" + one + "\n</tool_call>", "<tool_call>\n" + one + "\n</tool_call>", {}},
  };
  for (const Case& each : cases) {
    for (const std::size_t piece : {std::size_t{1}, std::size_t{3}, std::size_t{7}, std::size_t{1000}}) {
      const ToolCallText::Rest rest = divided(each.format, each.answer, piece);
      EXPECT_EQ(rest.text, each.text) << each.answer << ' ' << piece;
      EXPECT_EQ(rest.calls, each.calls) << each.answer << ' ' << piece;
    }
  }
  EXPECT_EQ(divided(ToolFormat::mistral, cases[7].answer, 5, R"(, "parallel_tool_calls": false)").calls,
            std::vector<ToolCall>{bern});
}

TEST(ToolCalls, text_that_is_no_call_comes_at_once) {
  ToolCallText hermes(ToolFormat::hermes, use());
  EXPECT_EQ(hermes.add("Hello <to"), "Hello");
  EXPECT_EQ(hermes.add("morrow>"), " <tomorrow>");
  ToolCallText llama(ToolFormat::llama, use());
  EXPECT_EQ(llama.add("Hello"), "Hello");
  EXPECT_EQ(llama.add(" {\"a\": 1}"), " {\"a\": 1}");
}

bool accepts(const grammar::Grammar& grammar, std::string_view text) {
  grammar::GrammarState state(grammar);
  return state.advance(text) && state.may_end();
}

TEST(ToolCalls, required_calls_have_a_grammar) {
  const ToolUse any = use(R"(, "tool_choice": "required")");
  const std::string bern = R"({"name": "weather", "arguments": {"city": "Bern"}})";
  const std::string now = R"({"name": "now", "arguments": {}})";
  const auto hermes = [](const std::string& call) { return "<tool_call>\n" + call + "\n</tool_call>"; };
  const grammar::Grammar several = grammar_of(any, ToolFormat::hermes).value();
  EXPECT_TRUE(accepts(several, hermes(bern)));
  EXPECT_TRUE(accepts(several, hermes(bern) + "\n" + hermes(now)));
  EXPECT_FALSE(accepts(several, "I look.\n" + hermes(bern)));
  EXPECT_FALSE(accepts(several, hermes(R"({"name": "weather", "arguments": {"city": "Paris"}})")));
  EXPECT_FALSE(accepts(several, hermes(R"({"name": "other", "arguments": {}})")));
  EXPECT_FALSE(accepts(several, hermes(R"({"name": "now", "arguments": {"a": 1}})")));
  const ToolUse single = use(R"(, "tool_choice": "required", "parallel_tool_calls": false)");
  EXPECT_FALSE(accepts(grammar_of(single, ToolFormat::hermes).value(), hermes(bern) + "\n" + hermes(now)));
  const ToolUse named = use(R"(, "tool_choice": {"type": "function", "function": {"name": "now"}})");
  EXPECT_TRUE(accepts(grammar_of(named, ToolFormat::hermes).value(), hermes(now)));
  EXPECT_FALSE(accepts(grammar_of(named, ToolFormat::hermes).value(), hermes(bern)));
  EXPECT_TRUE(accepts(grammar_of(any, ToolFormat::mistral).value(), "[TOOL_CALLS] [" + bern + ", " + now + "]"));
  EXPECT_TRUE(accepts(grammar_of(any, ToolFormat::llama).value(), R"({"name": "now", "parameters": {}})"));
  EXPECT_EQ(grammar_of(any, ToolFormat::none).error().key, "tool_choice");
  for (const ToolFormat format : {ToolFormat::hermes, ToolFormat::mistral, ToolFormat::llama}) {
    // What the grammar allows is read as a call.
    const std::string key = format == ToolFormat::llama ? "parameters" : "arguments";
    const std::string call = R"({"name": "weather", ")" + key + R"(": {"city": "Rome", "days": 3}})";
    const std::string text = format == ToolFormat::hermes    ? hermes(call)
                             : format == ToolFormat::mistral ? "[TOOL_CALLS] [" + call + "]"
                                                             : call;
    EXPECT_TRUE(accepts(grammar_of(any, format).value(), text)) << text;
    EXPECT_EQ(divided(format, text, 4).calls, (std::vector<ToolCall>{{"", "weather", R"({"city":"Rome","days":3})"}}));
  }
  Node odd = parse_json(R"({"tools": [{"type": "function", "function": {"name": "f", "parameters": {"not": {}}}}],
                            "tool_choice": "required"})",
                        "request")
                 .value();
  Fields fields(odd);
  const Result<grammar::Grammar> refused = grammar_of(read_tool_use(fields).value(), ToolFormat::hermes);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().key, "tools");
  EXPECT_NE(refused.error().message.find("'not'"), std::string::npos) << refused.error().message;
}

}  // namespace
}  // namespace systole
