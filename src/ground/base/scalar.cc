// The type of a plain scalar, by the core schema of YAML 1.2.2 (section 10.3.2). Without regular expressions, because a
// scalar may have megabytes.

#include "ground/base/document.h"

namespace systole {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Takes leading digits off `text`; returns their number.
std::size_t take_digits(std::string_view& text) {
  std::size_t count = 0;
  while (count < text.size() && is_digit(text[count])) ++count;
  text.remove_prefix(count);
  return count;
}

bool all_of(std::string_view text, std::string_view letters) {
  return !text.empty() && text.find_first_not_of(letters) == std::string_view::npos;
}

// [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?
bool is_decimal(std::string_view text) {
  std::size_t digits = take_digits(text);
  if (!text.empty() && text[0] == '.') {
    text.remove_prefix(1);
    digits += take_digits(text);
  }
  if (digits == 0) return false;
  if (text.empty()) return true;
  if (text[0] != 'e' && text[0] != 'E') return false;
  text.remove_prefix(1);
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  return take_digits(text) > 0 && text.empty();
}

bool is_number(std::string_view text) {
  if (text.starts_with("0x")) return all_of(text.substr(2), "0123456789abcdefABCDEF");
  if (text.starts_with("0o")) return all_of(text.substr(2), "01234567");
  if (text == ".nan" || text == ".NaN" || text == ".NAN") return true;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  return is_decimal(text) || text == ".inf" || text == ".Inf" || text == ".INF";
}

}  // namespace

NodeKind kind_of_plain(std::string_view text) {
  for (const std::string_view null : {"", "~", "null", "Null", "NULL"}) {
    if (text == null) return NodeKind::null;
  }
  for (const std::string_view boolean : {"true", "True", "TRUE", "false", "False", "FALSE"}) {
    if (text == boolean) return NodeKind::boolean;
  }
  return is_number(text) ? NodeKind::number : NodeKind::string;
}

}  // namespace systole
