#include "operate/launch/rank_seat.h"

#include <unistd.h>

#include "ground/process/machine.h"
#include "operate/launch/launch_keys.h"

namespace systole {

Result<std::unique_ptr<RankSeat>> RankSeat::take(const RankIdentity& identity, RankSeatOptions options) {
  const RankPlace& place = identity.place;
  RendezvousClient client = TRY(RendezvousClient::connect(
      identity.rendezvous, identity.token,
      {.generation = place.generation, .connect_time = options.connect_time, .tls = identity.tls}));
  const std::optional<std::string> workload = TRY(client.get(kWorkloadKey));
  if (workload != identity.workload) {
    return error(ErrorKind::invalid, "rank {} runs another workload ({}) than this run ({})", place.rank,
                 identity.workload, workload.value_or("none"))
        .hinted("start all nodes with the same job file, weights and version of systole");
  }
  std::unique_ptr<RankSeat> seat(new RankSeat(identity, std::move(client)));
  LeaseTerms terms{rank_lease(place.rank), fmt::format("process {} on {}", ::getpid(), host_name()), options.heartbeat,
                   place.generation, identity.tls};
  Result<std::unique_ptr<LeaseKeeper>> keeper =
      LeaseKeeper::start(identity.rendezvous, identity.token, std::move(terms), std::move(options.lost));
  if (!keeper.ok() && keeper.error().kind == ErrorKind::exists) {
    return error(ErrorKind::exists, "rank {} of generation {} is taken: {}", place.rank, place.generation,
                 keeper.error().message)
        .hinted("two processes were started as the same rank");
  }
  seat->keeper_ = TRY(std::move(keeper));
  return seat;
}

Status RankSeat::wait_for_all(const std::string& what, Seconds longest) {
  Status came = client_.barrier(what, identity_.place.num_ranks, identity_.place.rank, longest);
  if (came.ok() || came.error().kind != ErrorKind::not_found) return came;
  return error(ErrorKind::not_found, "ranks are missing: {}", came.error().message);
}

}  // namespace systole
