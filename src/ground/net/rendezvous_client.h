#pragma once
// A connection to a rendezvous server. Every call blocks until its answer, up to the stated time. After a connection
// error every further call returns the same error. One thread at a time.
//
// Errors of every call, besides those listed: io (the server is gone or does not answer), interrupted (this client's
// generation is over), invalid (a limit of the server; the message says which).

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ground/net/rendezvous_wire.h"
#include "ground/net/stream.h"
#include "ground/net/token.h"

namespace systole {

struct RendezvousClientOptions {
  std::uint64_t generation = 0;          // sent with every request; 0: no generation
  Seconds connect_time = Seconds(30.0);  // for the server to come up
  Seconds answer_time = Seconds(10.0);   // in addition to the wait time of the call itself
  bool tls = false;                      // must match the server
};

struct RendezvousSwap {
  bool swapped = false;
  std::optional<std::string> value;  // the value after the call
};

struct RendezvousLease {
  std::string name, who;
  Seconds left;  // not above 0: expired this long ago
  bool live() const { return left > Seconds{}; }
};

class RendezvousClient {
 public:
  // Errors: invalid (the server closed silently: another token, or only one side uses TLS), unsupported (another
  // version; no libssl), corrupt (another program), not_found (no such host), io (no listener by the end of
  // connect_time).
  static Result<RendezvousClient> connect(const NetAddress& server, const RunToken& token,
                                          RendezvousClientOptions options = {});

  Status set(const std::string& key, std::string value);
  Result<std::optional<std::string>> get(const std::string& key);
  // Waits until the key exists and, with `unlike`, has another value. Errors: not_found (timeout).
  Result<std::string> wait(const std::string& key, Seconds longest, std::optional<std::string> unlike = {});
  // Adds to a counter that starts at 0 and returns the sum; values are decimal text. Errors: invalid (not a number, or
  // overflow).
  Result<std::int64_t> add(const std::string& key, std::int64_t amount);
  // `expected` none: only if the key is absent.
  Result<RendezvousSwap> compare_and_set(const std::string& key, std::optional<std::string> expected,
                                         std::string desired);
  Result<std::int64_t> erase(const std::string& prefix);  // returns the number of keys removed
  Result<std::vector<RendezvousEntry>> list(const std::string& prefix);

  // Waits until all `members` have arrived; this one is `member` (from 0). Errors: not_found (timeout; lists the
  // missing member numbers), exists (the member is already there).
  Status barrier(const std::string& name, std::int64_t members, std::int64_t member, Seconds longest);

  // Takes or renews a lease. `holder` distinguishes a renewal from a competing request.
  // Errors: exists (another holder; says who), not_found (expired before the renewal).
  Status lease(const std::string& name, std::uint64_t holder, Seconds time_to_live, std::string who);
  Status release(const std::string& name, std::uint64_t holder);  // errors: not_found (no longer held)
  Result<std::vector<RendezvousLease>> leases(const std::string& prefix);

  // Starts a generation. Drops the keys and leases of earlier ones and notifies their clients. Errors: exists (it or a
  // later one is already current).
  Status fence(std::uint64_t generation);
  void set_generation(std::uint64_t generation) { options_.generation = generation; }

  const std::string& peer() const { return peer_; }  // "the rendezvous at 10.0.0.1:7000"

 private:
  RendezvousClient() = default;
  Result<RendezvousReply> ask(RendezvousRequest request);
  Result<RendezvousReply> exchange(const RendezvousRequest& request);

  NetStream stream_;
  RendezvousClientOptions options_;
  std::string peer_;
  std::optional<Error> broken_;
};

}  // namespace systole
