#pragma once
// Connections between all ranks over TCP, made once, at the beginning of a generation.
//
// Every rank listens, and writes its address and a secret of 128 random bits into the rendezvous, which only those with
// the run's token can read. Whoever connects shows the secret of the one it connects to and is answered with its own:
// both are known then, and the run's token itself never travels here. Whoever cannot do that is closed without a byte.
// When all have come nobody listens any more. With TLS each connection begins with its handshake (ground/net/tls.h), in
// which whoever does not know the run's token gets no further.
//
//   hello    8 bytes magic, 16 the listener's secret, u32 from, u32 to, u32 channel; answered by the caller's secret

#include <cstdint>
#include <string>
#include <vector>

#include "ground/net/rendezvous_client.h"
#include "ground/net/stream.h"

namespace systole {

// Two connections to each peer: one for messages, one that only tells how things stand. Own place: none.
struct TcpLinks {
  std::vector<NetStream> data, control;
};

struct TcpMeshOptions {
  std::string host = "127.0.0.1";        // where this rank listens, and the others reach it
  Seconds connect_time = Seconds(60.0);  // for all to come
  std::shared_ptr<const Tls> tls = {};   // null: plain; of all ranks the same
};

// `rendezvous` is in the generation of the ranks. Errors: not_found, io, naming the ranks that did not come;
// interrupted (the generation is over).
Result<TcpLinks> connect_ranks(RendezvousClient& rendezvous, std::int32_t rank, std::int32_t num_ranks,
                               const TcpMeshOptions& options);

}  // namespace systole
