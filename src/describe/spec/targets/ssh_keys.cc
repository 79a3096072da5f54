#include "describe/spec/targets/ssh_keys.h"

#include "describe/spec/schema.h"
#include "describe/spec/ssh_host.h"

namespace systole {
namespace {

Codec hosts_codec() {
  Codec codec = texts_codec(AT(ssh.hosts));
  codec.read = [read = codec.read](const Node& node, Workload& w) -> Status {
    TRY(read(node, w));
    const bool list = node.is_sequence();
    for (std::size_t i = 0; i < w.ssh.hosts.size(); ++i)
      if (!read_named_host(w.ssh.hosts[i]))
        return error(ErrorKind::invalid, "'{}' is no [USER@]HOST[:PORT]", w.ssh.hosts[i])
            .at(list ? node.items()[i].where() : node.where())
            .hinted("as in alice@node1:2222; HOST is how the machines reach each other, too");
    return {};
  };
  return codec;
}

}  // namespace

void add_ssh_keys(Schema& schema) {
  schema.sections.push_back({"ssh", "Plain machines, reached by ssh.", {}, {}});
  schema.keys.push_back({.path = "ssh.hosts",
                         .codec = hosts_codec(),
                         .doc = "Machines to start it on, [USER@]HOST[:PORT] each; the first leads.",
                         .optional = true});
}

}  // namespace systole
