#pragma once
// The prompt of a conversation: the model's chat template over its messages, as tokens.
//
// A special token that the template spells becomes that token. Text of a request never does, even where it spells one:
// before the template sees it, such a spelling is broken by a byte that no UTF-8 has, and so is the part of one at the
// end of a text, or at its beginning unless that is a letter or a digit, which a neighbour could make whole. (A template
// that puts a letter of the request within a special token's name, as `<{{ content }}>` for "<s>", is not protected.)
// The byte is taken out again before the text is encoded.

#include <bitset>
#include <ctime>
#include <string>
#include <vector>

#include "execute/data/tokenizer.h"
#include "execute/serve/chat/chat_template.h"

namespace systole::chat {

// A conversation as chat templates expect it.
struct Conversation {
  Node messages = Node::sequence();
  Node tools = {};  // null: none
};

class ChatPrompt {
 public:
  // `bos`, `eos`: what the template has as bos_token and eos_token.
  ChatPrompt(ChatTemplate chat, Tokenizer tokenizer, std::string bos, std::string eos);

  // `now`: for strftime_now. Nothing is put before the text: a template writes its bos. Errors: those of the template.
  Result<std::vector<std::int32_t>> tokens_of(const Conversation& conversation, const std::tm& now) const;
  const ChatTemplate& chat_template() const { return chat_; }

 private:
  std::string guarded(const std::string& text) const;
  Value guarded(const Node& node, bool of_message) const;
  std::vector<std::int32_t> encoded(const std::string& text) const;

  ChatTemplate chat_;
  Tokenizer tokenizer_;
  std::string bos_, eos_;
  std::vector<SpecialToken> specials_;  // a name of one byte cannot be broken: it is text
  std::bitset<256> begins_special_;
};

}  // namespace systole::chat
