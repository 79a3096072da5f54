#pragma once
// One connection to a rendezvous. Every call waits for its answer, at most as long as it says; after an error of the
// connection each further call gives that error again. One thread at a time.
//
// Errors of every call, beyond those named: io (the server is gone or does not answer), interrupted (the generation of
// this client is over), invalid (a limit of the server, said by it).

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ground/net/rendezvous_wire.h"
#include "ground/net/stream.h"
#include "ground/net/token.h"

namespace systole {

struct RendezvousClientOptions {
  std::uint64_t generation = 0;          // carried by every request; 0: of none
  Seconds connect_time = Seconds(30.0);  // for the server to come up
  Seconds answer_time = Seconds(10.0);   // beyond what a call itself waits
  bool tls = false;                      // as the server
};

struct RendezvousSwap {
  bool swapped = false;
  std::optional<std::string> value;  // what is there afterwards
};

struct RendezvousLease {
  std::string name, who;
  Seconds left;  // not above 0: it ran out so long ago
  bool live() const { return left > Seconds{}; }
};

class RendezvousClient {
 public:
  // Errors: invalid (the server closed without a word: another token; it has TLS and we have not, or the other way
  // round), unsupported (another version of ours; no libssl), corrupt (another program), not_found (no such host), io
  // (nobody listens, by the end of connect_time).
  static Result<RendezvousClient> connect(const NetAddress& server, const RunToken& token,
                                          RendezvousClientOptions options = {});

  Status set(const std::string& key, std::string value);
  Result<std::optional<std::string>> get(const std::string& key);
  // Until the key is there and, with `unlike`, holds something else. Errors: not_found (not by then).
  Result<std::string> wait(const std::string& key, Seconds longest, std::optional<std::string> unlike = {});
  // The sum, from 0; values are decimal text. Errors: invalid (no number there, or too large a sum).
  Result<std::int64_t> add(const std::string& key, std::int64_t amount);
  // `expected` none: only where nothing is.
  Result<RendezvousSwap> compare_and_set(const std::string& key, std::optional<std::string> expected,
                                         std::string desired);
  Result<std::int64_t> erase(const std::string& prefix);  // how many keys there were
  Result<std::vector<RendezvousEntry>> list(const std::string& prefix);

  // Until all `members` have come, `member` (from 0) being this one. Errors: not_found (not all by then; those who did
  // not come are named by number), exists (the member is there already).
  Status barrier(const std::string& name, std::int64_t members, std::int64_t member, Seconds longest);

  // Takes or renews a lease. `holder` tells one who renews from one who wants the same place.
  // Errors: exists (somebody else holds it; says who), not_found (it ran out before it was renewed).
  Status lease(const std::string& name, std::uint64_t holder, Seconds time_to_live, std::string who);
  Status release(const std::string& name, std::uint64_t holder);  // not_found: not held any more
  Result<std::vector<RendezvousLease>> leases(const std::string& prefix);

  // Begins a generation: what earlier ones wrote and hold is gone, who belongs to them is told. Errors: exists (it or a
  // later one runs already).
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
