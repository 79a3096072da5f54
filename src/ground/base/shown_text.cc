#include "ground/base/shown_text.h"

namespace systole {

std::string without_passwords(std::string_view text) {
  constexpr std::string_view kBegins = "://";
  std::string shown;
  while (true) {
    const std::size_t begin = text.find(kBegins);
    if (begin == text.npos) return shown.append(text);
    const std::size_t place = begin + kBegins.size();
    shown += text.substr(0, place);
    text.remove_prefix(place);
    const std::size_t user = text.substr(0, text.find_first_of("/?# \t\r\n")).rfind('@');
    if (user == text.npos) continue;
    shown += "***";
    text.remove_prefix(user);
  }
}

}  // namespace systole
