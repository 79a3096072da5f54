#pragma once
// A rank's side of the launch: it identifies itself, takes its place in its generation and keeps it by a heartbeat. A
// second process of the same rank, a late one, or one with another workload is refused by name.

#include <functional>
#include <memory>

#include "ground/net/lease_keeper.h"
#include "ground/net/rendezvous_client.h"
#include "operate/launch/rank_environment.h"

namespace systole {

struct RankSeatOptions {
  Seconds heartbeat = Seconds(10.0);  // after so long a silence it counts as hung
  Seconds connect_time = Seconds(30.0);
  // Called once, from another thread, when the place is lost: the generation is over, or the agent is gone. Then the
  // process must exit; code 76 says that it is not to blame.
  std::function<void(const Error&)> lost;
};

class RankSeat {
 public:
  // Errors: invalid (another workload; a wrong token), exists (the rank has joined already), interrupted (its
  // generation is over), io (no rendezvous).
  static Result<std::unique_ptr<RankSeat>> take(const RankIdentity& identity, RankSeatOptions options);

  const RankIdentity& identity() const { return identity_; }
  // The rendezvous, in this rank's generation; for one thread at a time.
  RendezvousClient& rendezvous() { return client_; }
  // Waits until all ranks have arrived. Errors: not_found, naming the missing ranks.
  Status wait_for_all(const std::string& what, Seconds longest);

 private:
  RankSeat(RankIdentity identity, RendezvousClient client)
      : identity_(std::move(identity)), client_(std::move(client)) {}
  RankIdentity identity_;
  RendezvousClient client_;
  std::unique_ptr<LeaseKeeper> keeper_;
};

}  // namespace systole
