#include "execute/serve/chat/template_text.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "ground/base/error.h"
#include "ground/base/utf8.h"

namespace systole::chat {
namespace {

[[noreturn]] void wrong(const char* what, ErrorKind kind = ErrorKind::invalid) { fail(error(kind, "{}", what)); }

// The bytes of the character that ends `text`.
std::size_t last_length(std::string_view text) {
  for (std::size_t n = 1; n <= std::min<std::size_t>(text.size(), 4); ++n) {
    if (utf8_length(text.substr(text.size() - n)) == n) return n;
  }
  return 1;
}

// White space of Python's texts.
bool is_space(std::string_view character) {
  if (character.size() == 1)
    return character[0] == ' ' || (character[0] >= 9 && character[0] <= 13) ||
           (character[0] >= 0x1C && character[0] <= 0x1F);
  static constexpr std::string_view kWide[] = {"\u0085", "\u00a0", "\u1680", "\u2000", "\u2001", "\u2002", "\u2003",
                                               "\u2004", "\u2005", "\u2006", "\u2007", "\u2008", "\u2009", "\u200a",
                                               "\u2028", "\u2029", "\u202f", "\u205f", "\u3000"};
  return std::ranges::find(kWide, character) != std::end(kWide);
}

void check_size(const std::string& text) {
  if (text.size() > kLargestText) wrong("a text becomes too large", ErrorKind::does_not_fit);
}
void add_part(List& parts, std::string_view part) {
  if (parts.size() >= kLargestList) wrong("a list becomes too large", ErrorKind::does_not_fit);
  parts.emplace_back(part);
}

List split_by_space(std::string_view text, std::int64_t most, bool from_right) {
  if (from_right && most >= 0) wrong("rsplit by white space with a limit is not supported", ErrorKind::unsupported);
  const auto length = [&](std::size_t at) { return std::max<std::size_t>(utf8_length(text.substr(at)), 1); };
  List parts;
  while (true) {
    while (!text.empty() && is_space(text.substr(0, length(0)))) text.remove_prefix(length(0));
    if (text.empty()) return parts;
    std::size_t end = most == 0 ? text.size() : 0;
    while (end < text.size() && !is_space(text.substr(end, length(end)))) end += length(end);
    add_part(parts, text.substr(0, end));
    text.remove_prefix(end);
    if (most > 0) --most;
  }
}

}  // namespace

std::vector<std::string_view> characters(std::string_view text) {
  std::vector<std::string_view> result;
  while (!text.empty()) {
    const std::size_t length = std::max<std::size_t>(utf8_length(text), 1);
    result.push_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return result;
}

std::string stripped(std::string_view text, const std::optional<std::string>& set, bool left, bool right) {
  std::vector<std::string_view> all;
  if (set) all = characters(*set);
  const auto goes = [&](std::string_view character) {
    return set ? std::ranges::find(all, character) != all.end() : is_space(character);
  };
  while (left && !text.empty()) {
    const std::size_t length = std::max<std::size_t>(utf8_length(text), 1);
    if (!goes(text.substr(0, length))) break;
    text.remove_prefix(length);
  }
  while (right && !text.empty()) {
    const std::size_t length = last_length(text);
    if (!goes(text.substr(text.size() - length))) break;
    text.remove_suffix(length);
  }
  return std::string(text);
}

std::string cased(std::string text, bool upper) {
  for (char& c : text) {
    if (upper && c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    if (!upper && c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

std::string capitalized(std::string text) {
  text = cased(std::move(text), false);
  if (!text.empty()) text.replace(0, 1, cased(text.substr(0, 1), true));
  return text;
}

std::string titled(const std::string& text, bool filter) {
  std::string result = cased(text, false);
  bool begins = true;
  for (char& c : result) {
    const bool letter = (c >= 'a' && c <= 'z') || static_cast<unsigned char>(c) >= 0x80;
    const bool separates = filter ? std::string_view("-({[< \t\n\r\f\v").find(c) != std::string_view::npos : !letter;
    if (begins && letter) c = cased(std::string(1, c), true)[0];
    begins = separates;
  }
  return result;
}

std::size_t find_text(std::string_view text, std::string_view part, std::size_t from) {
  if (from > text.size()) return std::string::npos;
  if (part.empty()) return from;
  if (part.size() == 1) return text.find(part[0], from);
  const void* found = memmem(text.data() + from, text.size() - from, part.data(), part.size());
  return found == nullptr ? std::string::npos : static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
}

std::string replaced(const std::string& text, const std::string& from, const std::string& to, std::int64_t count) {
  if (from.empty()) wrong("replace of an empty text");
  std::string result;
  std::size_t at = 0;
  for (std::size_t found = find_text(text, from); found != text.npos && count != 0; found = find_text(text, from, at)) {
    if (count > 0) --count;
    result.append(text, at, found - at).append(to);
    at = found + from.size();
    check_size(result);
  }
  return result.append(text, at);
}

List split(const std::string& text, const std::optional<std::string>& by, std::int64_t most, bool from_right) {
  if (!by) return split_by_space(text, most, from_right);
  if (by->empty()) wrong("split by an empty text");
  List parts;
  if (from_right && most >= 0) {
    if (by->size() > 100) wrong("rsplit by a long text", ErrorKind::does_not_fit);
    std::size_t end = text.size();
    for (; most > 0; --most) {
      const std::size_t found = end < by->size() ? text.npos : text.rfind(*by, end - by->size());
      if (found == text.npos) break;
      add_part(parts, std::string_view(text).substr(found + by->size(), end - found - by->size()));
      end = found;
    }
    add_part(parts, std::string_view(text).substr(0, end));
    std::ranges::reverse(parts);
    return parts;
  }
  std::size_t at = 0;
  for (std::size_t found = find_text(text, *by); found != text.npos && most != 0; found = find_text(text, *by, at)) {
    add_part(parts, std::string_view(text).substr(at, found - at));
    at = found + by->size();
    if (most > 0) --most;
  }
  add_part(parts, std::string_view(text).substr(at));
  return parts;
}

std::int64_t count_of_characters(std::string_view text) {
  std::int64_t count = 0;
  for (; !text.empty(); ++count) text.remove_prefix(std::max<std::size_t>(utf8_length(text), 1));
  return count;
}

std::optional<double> number_in(const std::string& text) {
  std::string digits = stripped(text, std::nullopt, true, true);
  if (digits.starts_with('+')) digits.erase(0, 1);
  double number = 0;
  const auto [stop, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (problem != std::errc() || stop != digits.data() + digits.size()) return std::nullopt;
  return number;
}

std::string indented(const std::string& text, std::size_t width, bool first, bool blank) {
  const std::string space(width, ' ');
  std::string result;
  for (std::size_t at = 0, line = 0; at <= text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view piece = std::string_view(text).substr(at, end - at);
    if (line == 0 ? first : (blank || !piece.empty())) result += space;
    result += piece;
    check_size(result);
    if (end < text.size()) result += '\n';
    at = end + 1;
  }
  return result;
}

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&#34;"; break;
      case '\'': result += "&#39;"; break;
      default: result += c;
    }
  }
  return result;
}

}  // namespace systole::chat
