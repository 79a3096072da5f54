// Any bytes as a chat template: refused, or rendered or refused over a conversation within the bounds, and each time the
// same.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "execute/serve/chat/chat_template.h"

using namespace systole;

namespace {

chat::Map conversation() {
  const Node messages = parse_json(R"([{"role": "system", "content": " a "}, {"role": "user", "content": "b\n\u00e9"},
                     {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {"x": 1.5}}}]}])",
                                   "messages")
                            .value();
  return {{"messages", chat::Value::from(messages)}, {"bos_token", "<s>"}, {"add_generation_prompt", true}, {"n", 3}};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto parsed = chat::ChatTemplate::parse({reinterpret_cast<const char*>(data), size});
  if (!parsed) return 0;
  const auto once = parsed->render(conversation());
  if (!once.ok()) {
    if (once.error().message.empty()) std::abort();
    return 0;
  }
  const auto again = parsed->render(conversation());
  if (!again.ok() || *once != *again) std::abort();
  return 0;
}
