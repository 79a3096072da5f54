#pragma once
// A machine as ssh.hosts names it: [USER@]HOST[:PORT]. A name that begins with '-' is none: ssh would take it as an
// option, and -oProxyCommand runs a program here.

#include <optional>
#include <string>

namespace systole {

struct NamedHost {
  std::string login, name, port = "-";  // as ssh takes it; as the machines reach each other; '-' for ssh's own
};
// Nothing when it is of another form.
std::optional<NamedHost> read_named_host(const std::string& text);

}  // namespace systole
