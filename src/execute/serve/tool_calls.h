#pragma once
// Calls of tools in a model's answers: what a request says of them, how models of a format write them, and the parts of
// an answer. Sources: https://platform.openai.com/docs/guides/function-calling (2026-11), and the chat templates of the
// models for what they write:
//
//   hermes   <tool_call>\n{"name": "f", "arguments": {…}}\n</tool_call>, several in a row, after text or without; Qwen's
//   mistral  [TOOL_CALLS] [{"name": "f", "arguments": {…}}, …]
//   llama    {"name": "f", "parameters": {…}}, which is the whole answer; Llama 3's

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "execute/data/tokenizer.h"
#include "execute/serve/grammar/grammar.h"
#include "execute/serve/request_fields.h"
#include "ground/base/document.h"

namespace systole {

enum class ToolFormat { none, hermes, mistral, llama };
const char* name_of(ToolFormat format);
// By what the template writes for calls of the conversation. none: it has none, or in another format.
ToolFormat tool_format_of(std::string_view chat_template);
// Special tokens that mark calls, and must be spelled for them to be found.
std::vector<SpecialToken> marks_of(ToolFormat format, const Tokenizer& tokenizer);

// What a request for chat says of tools.
struct ToolUse {
  enum class Choice { none, automatic, required, named };
  Node tools = Node::sequence();  // as the request has them
  Choice choice = Choice::none;   // none also without tools
  std::string name = {};          // of a named one
  bool parallel = true;           // more than one call in an answer

  bool is_forced() const { return choice == Choice::required || choice == Choice::named; }
};
// `tools`, `tool_choice` and `parallel_tool_calls`. Errors: invalid, naming the field.
Result<ToolUse> read_tool_use(Fields& fields);

// The calls that tool_choice requires: of any tool or of the named one, with arguments under its `parameters`. Errors:
// those of Grammar (as invalid where it is too large), naming `tools`; unsupported, naming `tool_choice`: no format.
// REQUIRES: use.is_forced().
Result<grammar::Grammar> grammar_of(const ToolUse& use, ToolFormat format);

struct ToolCall {
  std::string id = {}, name, arguments;  // arguments: a JSON object
  bool operator==(const ToolCall&) const = default;
};

// Divides an answer, which comes in pieces, into text and calls. What looks like a call and is none is text.
class ToolCallText {
 public:
  // REQUIRES: with a format, the request uses its tools: use.choice is not none.
  ToolCallText(ToolFormat format, const ToolUse& use);

  // The text that this piece makes certain to be no call.
  std::string add(std::string_view piece);
  // At the end: the calls, and the text that was held back. Ids are not set.
  struct Rest {
    std::string text;
    std::vector<ToolCall> calls;
  };
  Rest rest();

 private:
  std::size_t certain() const;
  bool read(std::string_view text, Rest& rest) const;
  bool read_one(std::string_view json, std::vector<ToolCall>& calls) const;

  ToolFormat format_;
  std::vector<std::string> names_;
  std::size_t most_;
  std::string held_;
  bool begun_ = false;  // text has been given out
};

}  // namespace systole
