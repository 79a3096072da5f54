#pragma once
// The transport between hosts: a TCP connection to each rank for messages, plain or over TLS, and a second one that
// tells how things stand, so that a rank that fails says why and one that waits says for whom: the cause is named, and
// not its victims.
//
//   data       u64 stamp, u64 bytes, then the bytes; messages one after the other
//   control    u32 kind, u32 number, u32 length, so many bytes of text (at most 1,000)
//              kind 1 + an ErrorKind: the sender's transport has ended with it; 0: it waits for rank `number`, or, with
//              ~0, no longer
//
// Messages go from where they lie to the kernel and from the kernel into their place; only what is combined, or has a
// place of several rows, passes through a buffer of this transport. No thread of its own, nothing allocated while it
// runs. With TLS both pass through buffers of their connection, which grow at first.

#include <memory>

#include "execute/comm/tcp_mesh.h"
#include "execute/runtime/transport.h"

namespace systole {

struct TcpOptions {
  TcpMeshOptions mesh = {};
  Seconds patience = Seconds(60.0);
};

// Meets the other ranks through the rendezvous, whose client is in their generation. Errors: as connect_ranks.
Result<std::unique_ptr<Transport>> tcp_transport(RendezvousClient& rendezvous, std::int32_t rank,
                                                 std::int32_t num_ranks, const TcpOptions& options = {});

}  // namespace systole
