#pragma once
// The control connections of a TcpTransport, over which ranks exchange their status.

#include <mutex>
#include <optional>
#include <vector>

#include "ground/base/error.h"
#include "ground/net/stream.h"

namespace systole {

class TcpControl {
 public:
  TcpControl(std::vector<NetStream> links, std::int32_t rank);

  // To every peer; from any thread. Only the first error is sent.
  void tell_error(const Error& error);
  void tell_waiting(std::int32_t peer);  // -1: no longer

  // Reads all records that have arrived. An error reported by a peer ends this rank too.
  std::optional<Error> listen();
  // The last error of `peer`, also after its messages have ended.
  std::optional<Error> last_words(std::int32_t peer);
  // Follows the chain of waits from `peer` to a rank that reports none: the cause.
  std::int32_t cause_of(std::int32_t peer) const;
  int descriptor(std::int32_t peer) const { return links_[static_cast<std::size_t>(peer)].stream.fd(); }
  bool has_ended(std::int32_t peer) const { return links_[static_cast<std::size_t>(peer)].ended; }

 private:
  struct Link {
    NetStream stream;
    std::string said;  // an incomplete record
    std::int32_t waits_for = -1;
    bool ended = false;
    bool cut = false;  // we sent part of a record, so no other may follow
  };
  std::optional<Error> hear(std::int32_t peer);
  std::optional<Error> take_record(std::int32_t peer, Link& link);
  void tell(std::uint32_t kind, std::uint32_t number, const std::string& text);

  std::mutex speaking_;  // the telling and the listening thread may differ
  bool told_error_ = false;
  std::int32_t rank_;
  std::vector<Link> links_;
};

}  // namespace systole
