#pragma once
// Keeps one lease alive from a thread of its own: renewed three times in its time to live, over a connection that is
// made again when it breaks. When the lease cannot be kept, `lost` is called once, from that thread.

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "ground/net/rendezvous_client.h"

namespace systole {

struct LeaseTerms {
  std::string name;  // "rank/3"
  std::string who;   // for whoever finds the place taken: "process 123 on host-a"
  Seconds time_to_live = Seconds(10.0);
  std::uint64_t generation = 0;
  bool tls = false;  // as the server
};

class LeaseKeeper {
 public:
  // Holds the lease when it returns. Errors: exists (somebody else holds it), and as RendezvousClient.
  static Result<std::unique_ptr<LeaseKeeper>> start(const NetAddress& server, const RunToken& token, LeaseTerms terms,
                                                    std::function<void(const Error&)> lost);
  ~LeaseKeeper();  // gives the lease back

 private:
  LeaseKeeper(const NetAddress& server, const RunToken& token, LeaseTerms terms, std::function<void(const Error&)> lost,
              RendezvousClient client);
  void run();
  Status renew();
  bool rest(Seconds duration);  // false: asked to end

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
