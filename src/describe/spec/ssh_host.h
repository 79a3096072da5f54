#pragma once
// A machine of ssh.hosts: [USER@]HOST[:PORT]. A name that begins with '-' is refused: ssh would take it as an option,
// and -oProxyCommand runs a local program.

#include <optional>
#include <string>

namespace systole {

struct NamedHost {
  std::string login, name, port = "-";  // [USER@]HOST, for ssh; HOST, for the other machines; '-' for ssh's default
};
// Nothing when the text has another form.
std::optional<NamedHost> read_named_host(const std::string& text);

}  // namespace systole
