#pragma once
// run.sh, the list of machines, and the scripts that each of them starts.

#include <string>
#include <vector>

#include "describe/spec/ssh_host.h"
#include "operate/render/cluster_job.h"

namespace systole {

// Errors: unsupported, invalid: what plain machines do not have, invalid hosts.
Result<Rendered> render_ssh(const RenderRequest& ask, const ClusterJob& job);

// The machines of ssh.hosts. Errors: invalid: none, or one twice.
Result<std::vector<NamedHost>> hosts_of(const Workload& w);
// The file `hosts`: PORT LOGIN NAME, a line each.
std::string hosts_list(const std::vector<NamedHost>& hosts);
// The function `on PORT LOGIN COMMAND` of sh, which runs a line there; after the first newline.
inline constexpr const char* kOnMachine = R"sh(
on() { # PORT LOGIN COMMAND: a line of sh, there
  [ "$1" = - ] || set -- "$@" -p "$1"
  login=$2 command=$3
  shift 3
  ssh -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=15 "$@" -- "$login" "$command"
}
)sh";

}  // namespace systole
