#pragma once
// For tests of transports: ranks that are threads of this process, over each transport, and operations they share.

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "execute/comm/collectives.h"
#include "execute/comm/tcp_transport.h"
#include "ground/net/rendezvous_server.h"

namespace systole {

using Transports = std::vector<std::unique_ptr<Transport>>;

// Ranks on 127.0.0.1.
class TcpRanks {
 public:
  explicit TcpRanks(bool tls = false) : tls_(tls ? Tls::of(token_).value() : nullptr) {}
  RendezvousClient client() {
    return RendezvousClient::connect(server_->address(), token_, {.tls = tls_ != nullptr}).value();
  }
  const RunToken& token() const { return token_; }
  Transports connect(std::int32_t n, Seconds patience);
  TcpOptions options(Seconds patience) const {
    return {.mesh = {.connect_time = Seconds(30.0), .tls = tls_}, .patience = patience};
  }

 private:
  RunToken token_ = RunToken::make().value();
  std::shared_ptr<const Tls> tls_;
  std::unique_ptr<RendezvousServer> server_ = RendezvousServer::start(token_, {.tls = tls_ != nullptr}).value();
};

// "tcp"; "tls", the same encrypted; "loopback", or "loopback_4096" with rings of 4096 bytes. Each call makes new ranks.
using ConnectRanks = std::function<Transports(std::int32_t n, Seconds patience)>;
ConnectRanks ranks_over(const std::string& transport);

// The result of `body` on each rank; one thread per rank.
std::vector<Status> results_on(const Transports& ranks,
                               const std::function<Status(std::int32_t rank, Transport&)>& body);

// A contiguous message.
Outgoing message_to(std::int32_t rank, const std::vector<std::byte>& bytes);
Incoming message_from(std::int32_t rank, std::vector<std::byte>& bytes);

CollectiveCall sum_over(std::int64_t parts, Shape shape);
// Runs the call once on zeros, for all ranks along one axis.
Status run_once(Transport& transport, const CollectiveCall& call);

void expect_names(const Status& status, ErrorKind kind, std::initializer_list<const char*> parts);

}  // namespace systole
