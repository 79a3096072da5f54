#pragma once
// Keeps one lease alive from its own thread. Renews it three times per time to live and reconnects if the connection
// breaks. If the lease is lost, calls `lost` once, on that thread.

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "ground/net/rendezvous_client.h"

namespace systole {

struct LeaseTerms {
  std::string name;  // "rank/3"
  std::string who;   // holder's description for others: "process 123 on host-a"
  Seconds time_to_live = Seconds(10.0);
  std::uint64_t generation = 0;
  bool tls = false;  // must match the server
};

class LeaseKeeper {
 public:
  // Returns when the lease is held. Errors: exists (another process holds it), and as RendezvousClient.
  static Result<std::unique_ptr<LeaseKeeper>> start(const NetAddress& server, const RunToken& token, LeaseTerms terms,
                                                    std::function<void(const Error&)> lost);
  ~LeaseKeeper();  // releases the lease

 private:
  LeaseKeeper(const NetAddress& server, const RunToken& token, LeaseTerms terms, std::function<void(const Error&)> lost,
              RendezvousClient client);
  void run();
  Status renew();
  bool rest(Seconds duration);  // false: stop was requested

  NetAddress server_;
  RunToken token_;
  LeaseTerms terms_;
  std::function<void(const Error&)> lost_;
  std::uint64_t holder_ = 0;
  std::optional<RendezvousClient> client_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool end_ = false, held_ = true;
  std::thread thread_;
};

}  // namespace systole
