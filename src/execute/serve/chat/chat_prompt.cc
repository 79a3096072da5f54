#include "execute/serve/chat/chat_prompt.h"

#include <algorithm>

#include "execute/serve/chat/template_functions.h"

namespace systole::chat {
namespace {

constexpr char kBreak = '\xFF';

bool is_word(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Whether `text` from `at` is a special token's name, or the beginning of one as far as it goes.
bool begins(std::string_view text, std::string_view name) { return text.starts_with(name) || name.starts_with(text); }

// Whether `text` goes on within `name`.
bool continues(std::string_view text, std::string_view name) {
  for (std::size_t from = 1; from < name.size(); ++from) {
    if (begins(text, name.substr(from))) return true;
  }
  return false;
}

}  // namespace

ChatPrompt::ChatPrompt(ChatTemplate chat, Tokenizer tokenizer, std::string bos, std::string eos)
    : chat_(std::move(chat)), tokenizer_(std::move(tokenizer)), bos_(std::move(bos)), eos_(std::move(eos)) {
  for (const SpecialToken& special : tokenizer_.specials()) {
    if (special.name.size() < 2) continue;
    specials_.push_back(special);
    begins_special_.set(static_cast<unsigned char>(special.name[0]));
  }
}

std::string ChatPrompt::guarded(const std::string& text) const {
  std::string result;
  if (text.empty()) return result;
  for (const SpecialToken& special : specials_) {
    if (!is_word(text[0]) && result.empty() && continues(text, special.name)) result += kBreak;
  }
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::string_view rest = std::string_view(text).substr(at);
    const bool breaks =
        begins_special_[static_cast<unsigned char>(text[at])] &&
        std::ranges::any_of(specials_, [&](const SpecialToken& special) { return begins(rest, special.name); });
    result += text[at];
    if (breaks) result += kBreak;
  }
  return result;
}

// The role of a message, and the names of its fields, are not the client's to choose.
Value ChatPrompt::guarded(const Node& node, bool of_message) const {
  if (node.kind() == NodeKind::string) return guarded(node.text());
  if (node.is_sequence()) {
    List list;
    for (const Node& item : node.items()) list.push_back(guarded(item, of_message));
    return list;
  }
  if (!node.is_map()) return Value::from(node);
  Map map;
  for (const Node::Entry& entry : node.entries()) {
    if (of_message && entry.key == "role")
      map.emplace_back(entry.key, Value::from(entry.value));
    else
      map.emplace_back(of_message ? entry.key : guarded(entry.key), guarded(entry.value, false));
  }
  return map;
}

std::vector<std::int32_t> ChatPrompt::encoded(const std::string& text) const {
  std::vector<std::int32_t> tokens;
  Encoder encoder(tokenizer_);
  std::string piece;
  const auto end_piece = [&] {
    if (!piece.empty()) encoder.encode(piece, tokens);
    piece.clear();
  };
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view rest = std::string_view(text).substr(at);
    const SpecialToken* found = nullptr;  // the longest
    if (!begins_special_[static_cast<unsigned char>(text[at])]) {
      if (text[at] != kBreak) piece += text[at];
      ++at;
      continue;
    }
    for (const SpecialToken& special : specials_) {
      if (rest.starts_with(special.name) && (found == nullptr || special.name.size() > found->name.size()))
        found = &special;
    }
    if (found == nullptr) {
      piece += text[at++];
      continue;
    }
    end_piece();
    tokens.push_back(found->token);
    at += found->name.size();
  }
  end_piece();
  return tokens;
}

Result<std::vector<std::int32_t>> ChatPrompt::tokens_of(const Conversation& conversation, const std::tm& now) const {
  Map variables{{"messages", guarded(conversation.messages, true)},
                {"add_generation_prompt", true},
                {"bos_token", bos_},
                {"eos_token", eos_},
                {"strftime_now", strftime_of(now)}};
  if (!conversation.tools.is_null()) variables.emplace_back("tools", guarded(conversation.tools, false));
  return encoded(TRY(chat_.render(std::move(variables))));
}

}  // namespace systole::chat
