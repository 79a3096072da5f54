#include "describe/spec/ssh_host.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "ground/base/number_from.h"

namespace systole {

std::optional<NamedHost> read_named_host(const std::string& text) {
  const auto plain = [](std::string_view part) {
    return !part.empty() && part[0] != '-' && std::ranges::all_of(part, [](unsigned char c) {
      return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_';
    });
  };
  NamedHost host;
  std::string rest = text;
  if (const std::size_t colon = rest.find(':'); colon != rest.npos) {
    host.port = rest.substr(colon + 1);
    const int number = number_from<int>(host.port).value_or(0);
    if (number < 1 || number > 65535) return {};
    rest.resize(colon);
  }
  host.login = host.name = rest;
  if (const std::size_t at = rest.find('@'); at != rest.npos) {
    if (!plain(rest.substr(0, at))) return {};
    host.name = rest.substr(at + 1);
  }
  if (!plain(host.name)) return {};
  return host;
}

}  // namespace systole
