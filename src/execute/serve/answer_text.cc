#include "execute/serve/answer_text.h"

#include <algorithm>

#include "ground/base/utf8.h"

namespace systole {
namespace {

// The length of the longest end of `text` that is the beginning of `stop`, but not all of it. O(text * stop) at worst;
// `text` is what is held back, at most a token longer than the longest stop string.
std::size_t begins_at_end(std::string_view text, std::string_view stop) {
  for (std::size_t length = std::min(text.size(), stop.size() - 1); length > 0; --length) {
    if (text.ends_with(stop.substr(0, length))) return length;
  }
  return 0;
}

// The bytes at the end of `text` that may be the beginning of a character: at most 3.
std::size_t incomplete_at_end(std::string_view text) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size()); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if (byte < 0x80) return 0;
    if (byte < 0xC0) continue;  // continues a character
    const std::size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2;
    return length > back ? back : 0;
  }
  return 0;
}

bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

}  // namespace

AnswerText::AnswerText(const Tokenizer& tokenizer, std::vector<std::string> stop, bool skip_space,
                       std::int64_t min_tokens, std::vector<SpecialToken> spelled)
    : tokenizer_(tokenizer),
      stop_(std::move(stop)),
      spelled_(std::move(spelled)),
      skips_(skip_space),
      min_tokens_(min_tokens) {
  std::erase_if(stop_, [](const std::string& text) { return text.empty(); });
}

std::string AnswerText::take(std::size_t bytes) {
  std::string text = replace_invalid_utf8(std::string_view(held_).substr(0, bytes));
  held_.erase(0, bytes);
  return text;
}

std::size_t AnswerText::certain() const {
  std::size_t back = incomplete_at_end(held_);
  for (const std::string& stop : stop_) back = std::max(back, begins_at_end(held_, stop));
  return held_.size() - back;
}

std::string AnswerText::add(std::int32_t token) {
  if (stopped_) return {};
  std::string_view bytes = tokenizer_.bytes_of(token);
  if (const auto found = std::ranges::find(spelled_, token, &SpecialToken::token); found != spelled_.end())
    bytes = found->name;
  if (skips_) bytes.remove_prefix(std::min(bytes.find_first_not_of(' '), bytes.size()));
  skips_ = skips_ && bytes.empty();
  held_ += bytes;
  characters_ += std::ranges::count_if(bytes, begins_character);
  std::size_t first = std::string::npos;
  if (++tokens_ <= min_tokens_) return take(certain());
  for (const std::string& stop : stop_) first = std::min(first, held_.find(stop));
  if (first == std::string::npos) return take(certain());
  stopped_ = true;
  std::string text = take(first);
  held_.clear();
  return text;
}

std::string AnswerText::rest() { return take(held_.size()); }

}  // namespace systole
