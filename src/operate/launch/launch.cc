#include "operate/launch/launch.h"

#include "operate/launch/follower.h"
#include "operate/launch/leader.h"

namespace systole {

Result<LaunchOutcome> launch(LaunchOptions options) {
  const bool alone = options.rendezvous.port == 0;
  if (!alone && !options.token) {
    return error(ErrorKind::invalid, "a run on several nodes needs the token that they share")
        .hinted("32 hexadecimal digits, drawn once, the same for every node");
  }
  const RunToken token = options.token ? *options.token : TRY(RunToken::make());
  if (options.follows) return follow_launch(options, token, "");
  Result<std::unique_ptr<RendezvousServer>> server =
      RendezvousServer::start(token, {.bind = options.rendezvous, .tls = options.tls});
  if (server.ok()) {
    if (options.begins) options.begins();
    if (options.lead) options.watch = TRY(options.lead());
    const std::unique_ptr<LaunchLeader> leader = TRY(LaunchLeader::make(options, std::move(server).value(), token));
    return leader->run();
  }
  // Another agent of this host listens there, or the address is another machine's.
  return follow_launch(options, token, server.error().message);
}

}  // namespace systole
