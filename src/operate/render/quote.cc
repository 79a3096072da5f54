#include "operate/render/quote.h"

#include <algorithm>

namespace systole {
namespace {

bool is_letter_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

bool all_of(std::string_view text, std::string_view beside_letters) {
  return std::ranges::all_of(
      text, [&](char c) { return is_letter_or_digit(c) || beside_letters.find(c) != beside_letters.npos; });
}

}  // namespace

std::string kube_value(std::string_view text) {
  std::string value;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool read = text[i] == '$' && i + 1 < text.size() && (text[i + 1] == '$' || text[i + 1] == '(');
    value += read ? "$$" : text.substr(i, 1);
  }
  return value;
}

std::string comment_text(std::string_view text) {
  std::string line(text);
  std::ranges::replace_if(
      line, [](unsigned char c) { return c < 0x20 || c >= 0x7f; }, ' ');
  return line;
}

Result<std::string> sbatch_value(std::string_view option, std::string_view text) {
  if (!text.empty() && text[0] != '-' && all_of(text, "._/@:%+,=-&|*()[]")) return std::string(text);
  return error(ErrorKind::invalid, "{}: '{}' cannot stand in a batch script", option, comment_text(text))
      .hinted("letters, digits and ._/@:%+,=-&|*()[]; no space, and no '-' in front");
}

Result<std::string> docker_word(std::string_view key, std::string_view text) {
  std::string word = "\"";
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      return key_error(ErrorKind::invalid, std::string(key), "'{}' cannot stand in a Dockerfile", comment_text(text))
          .hinted("one line without control characters");
    if (c == '"' || c == '\\' || c == '$') word += '\\';
    word += c;
  }
  return word + '"';
}

}  // namespace systole
