#include "describe/spec/ssh_host.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string_view>

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
    int number = 0;
    const char* const end_of_port = host.port.data() + host.port.size();
    const auto [end, failed] = std::from_chars(host.port.data(), end_of_port, number);
    if (failed != std::errc() || end != end_of_port || number < 1 || number > 65535) return {};
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
