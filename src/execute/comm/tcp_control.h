#pragma once
// The control connections of a TcpTransport: what ranks tell each other about how they are.

#include <mutex>
#include <optional>
#include <vector>

#include "ground/base/error.h"
#include "ground/net/stream.h"

namespace systole {

class TcpControl {
 public:
  TcpControl(std::vector<NetStream> links, std::int32_t rank);

  // To every peer; from any thread. The first error stays, later ones are not told.
  void tell_error(const Error& error);
  void tell_waiting(std::int32_t peer);  // -1: no longer

  // Takes in what has come. An error that a peer told of ends this rank too.
  std::optional<Error> listen();
  // What `peer` said last, also when its messages have ended.
  std::optional<Error> last_words(std::int32_t peer);
  // Follows who waits for whom, from `peer`, to one that said nothing of the kind.
  std::int32_t cause_of(std::int32_t peer) const;
  int descriptor(std::int32_t peer) const { return links_[static_cast<std::size_t>(peer)].stream.fd(); }
  bool has_ended(std::int32_t peer) const { return links_[static_cast<std::size_t>(peer)].ended; }

 private:
  struct Link {
    NetStream stream;
    std::string said;  // a record that has begun
    std::int32_t waits_for = -1;
    bool ended = false;
    bool cut = false;  // a record of ours left in part: no other one may follow it
  };
  std::optional<Error> hear(std::int32_t peer);
  std::optional<Error> take_record(std::int32_t peer, Link& link);
  void tell(std::uint32_t kind, std::uint32_t number, const std::string& text);

  std::mutex speaking_;  // who tells and who listens may be two threads
  bool told_error_ = false;
  std::int32_t rank_;
  std::vector<Link> links_;
};

}  // namespace systole
