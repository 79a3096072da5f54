#include "ground/base/iso_time.h"

#include <cctype>
#include <cstdio>
#include <ctime>
#include <string>

namespace systole {

Result<std::chrono::system_clock::time_point> from_iso8601(std::string_view text) {
  const auto wrong = [&] {
    return error(ErrorKind::invalid, "'{:.40}' is no time of the form 2025-06-30T23:59:59Z", text);
  };
  const std::string line(text);
  std::tm parts{};
  int read = 0;
  if (std::sscanf(line.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d%n", &parts.tm_year, &parts.tm_mon, &parts.tm_mday,
                  &parts.tm_hour, &parts.tm_min, &parts.tm_sec, &read) != 6 ||
      read != 19)
    return wrong();
  std::string_view rest = text.substr(19);
  std::int64_t nanos = 0;
  if (rest.starts_with('.')) {
    rest.remove_prefix(1);
    std::int64_t unit = 100'000'000;
    if (rest.empty() || !std::isdigit(static_cast<unsigned char>(rest[0]))) return wrong();
    for (; !rest.empty() && std::isdigit(static_cast<unsigned char>(rest[0])); rest.remove_prefix(1), unit /= 10)
      nanos += (rest[0] - '0') * unit;
  }
  int hours = 0, minutes = 0;
  if (rest != "Z" && (rest.size() != 6 || (rest[0] != '+' && rest[0] != '-') ||
                      std::sscanf(std::string(rest.substr(1)).c_str(), "%2d:%2d", &hours, &minutes) != 2))
    return wrong();
  parts.tm_year -= 1900;
  parts.tm_mon -= 1;
  const std::tm before = parts;
  const std::int64_t seconds = ::timegm(&parts);
  if (parts.tm_mday != before.tm_mday || parts.tm_hour != before.tm_hour) return wrong();  // 30 February
  const int east = (hours * 60 + minutes) * 60 * (rest[0] == '-' ? -1 : 1);
  return std::chrono::system_clock::time_point(std::chrono::seconds(seconds - east) + std::chrono::nanoseconds(nanos));
}

}  // namespace systole
