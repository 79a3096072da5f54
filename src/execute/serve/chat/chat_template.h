#pragma once
// Chat templates: the Jinja text by which a published model's conversations become prompts. They come with models, from
// strangers, so a template can only compute text from what it is given: no files, no attributes of objects, and bounds
// on steps, nesting and size.
//
//   const ChatTemplate chat = TRY(ChatTemplate::parse(text));
//   std::string prompt = TRY(chat.render({{"messages", messages}, {"add_generation_prompt", true}}));
//
// The part of Jinja that is read is in template_parser.h; filters, tests and methods in template_functions.h. Texts are
// those of Python's jinja2 with transformers' settings (trim_blocks, lstrip_blocks, loop controls).

#include <memory>
#include <string>
#include <string_view>

#include "execute/serve/chat/template_parser.h"

namespace systole::chat {

class ChatTemplate {
 public:
  // Errors: invalid, unsupported; with the line.
  static Result<ChatTemplate> parse(std::string_view source);
  // The template also has range, namespace, dict, raise_exception. Errors: invalid (what the template refuses with
  // raise_exception; a wrong type or an undefined value), unsupported (a filter, test or method), does_not_fit (a
  // bound); with the line.
  Result<std::string> render(Map variables) const;
  const std::string& source() const { return *source_; }

 private:
  std::shared_ptr<const std::string> source_;
  std::shared_ptr<const Block> block_;
};

}  // namespace systole::chat
