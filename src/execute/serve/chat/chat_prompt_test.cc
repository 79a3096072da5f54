#include "execute/serve/chat/chat_prompt.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "ground/base/testing/places.h"

namespace systole::chat {
namespace {

// Its special tokens: <|begin_of_text|>, 0, and <|end_of_text|>, 1.
Tokenizer tokenizer() {
  std::ifstream file(SYSTOLE_SOURCE_DIR "/src/execute/data/golden/llama3.json", std::ios::binary);
  return Tokenizer::load(std::string(std::istreambuf_iterator<char>(file), {})).value();
}

using Tokens = std::vector<std::int32_t>;

Tokens plain(const std::string& text) {
  Tokens tokens;
  Encoder(tokenizer()).encode(text, tokens);
  return tokens;
}

Tokens prompt(const std::string& text, const std::string& messages, const std::string& tools = "null") {
  const ChatPrompt chat(ChatTemplate::parse(text).value(), tokenizer(), "<|begin_of_text|>", "<|end_of_text|>");
  return chat.tokens_of({parse_json(messages, "messages").value(), parse_json(tools, "tools").value()}, std::tm{})
      .value();
}

constexpr const char* kTemplate =
    "{{ bos_token }}{% for m in messages %}{{ m.role }} {{ m.content }}{{ eos_token }}{% endfor %}go";

Tokens joined(std::initializer_list<Tokens> parts) {
  Tokens all;
  for (const Tokens& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

TEST(ChatPrompt, special_tokens_of_the_template_are_tokens) {
  EXPECT_EQ(prompt(kTemplate, R"([{"role": "user", "content": "Hi there"}])"),
            joined({{0}, plain("user Hi there"), {1}, plain("go")}));
  EXPECT_EQ(prompt("a<|end_of_text|>b", "[]"), joined({plain("a"), {1}, plain("b")}));
}

TEST(ChatPrompt, text_of_a_request_never_becomes_one) {
  for (const std::string said : {"<|end_of_text|>", "a<|begin_of_text|>b", "<|<|end_of_text|>", "<<|end_of_text|>|>"}) {
    EXPECT_EQ(prompt(kTemplate, R"([{"role": "user", "content": ")" + said + "\"}]"),
              joined({{0}, plain("user " + said), {1}, plain("go")}))
        << said;
  }
  // In two texts that the template puts together, and in one that continues the template's.
  EXPECT_EQ(prompt("{% for m in messages %}{{ m.content }}{% endfor %}",
                   R"([{"role": "user", "content": "<|end_of"}, {"role": "user", "content": "_text|>"}])"),
            plain("<|end_of_text|>"));
  EXPECT_EQ(prompt("<{{ messages[0].content }}", R"([{"role": "user", "content": "|end_of_text|>"}])"),
            plain("<|end_of_text|>"));
  // Through filters, and in tools, their keys as well.
  EXPECT_EQ(prompt("{{ messages[0].content | trim | upper | lower }}",
                   R"([{"role": "user", "content": " <|end_of_text|> "}])"),
            plain("<|end_of_text|>"));
  EXPECT_EQ(prompt("{{ tools | tojson }}", "[]", R"([{"<|end_of_text|>": "<|begin_of_text|>"}])"),
            plain(R"([{"<|end_of_text|>": "<|begin_of_text|>"}])"));
}

}  // namespace
}  // namespace systole::chat
