#pragma once
// TCP connections between all ranks, made once at the beginning of a generation.
//
// Every rank listens, and writes its address and a random 128-bit secret into the rendezvous, which only holders of the
// run's token can read. A caller shows the secret of the rank it connects to and is answered with its own secret: this
// authenticates both, and the run's token is never sent here. A caller that fails is closed without a byte. Listening
// stops when all ranks have come. With TLS each connection begins with its handshake (ground/net/tls.h), which fails
// without the run's token.
//
//   hello    8 bytes magic, 16 the listener's secret, u32 from, u32 to, u32 channel; answered by the caller's secret

#include <cstdint>
#include <string>
#include <vector>

#include "ground/net/rendezvous_client.h"
#include "ground/net/stream.h"

namespace systole {

// Two connections to each peer: one for messages, one for status. This rank's own entries are empty.
struct TcpLinks {
  std::vector<NetStream> data, control;
};

struct TcpMeshOptions {
  std::string host = "127.0.0.1";        // address where this rank listens and its peers reach it
  Seconds connect_time = Seconds(60.0);  // time limit for all ranks to connect
  std::shared_ptr<const Tls> tls = {};   // null: plain TCP; the same for all ranks
};

// `rendezvous` has joined the ranks' generation.
// Errors: not_found, io, naming the ranks that did not come; interrupted (the generation is over).
Result<TcpLinks> connect_ranks(RendezvousClient& rendezvous, std::int32_t rank, std::int32_t num_ranks,
                               const TcpMeshOptions& options);

}  // namespace systole
