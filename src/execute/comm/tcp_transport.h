#pragma once
// The transport between hosts. It has two TCP connections to each rank, plain or over TLS: one for messages, one for
// status. Over the status connection a failing rank says why and a waiting rank says for whom, so errors name the
// cause, not a victim.
//
//   data       u64 stamp, u64 bytes, then the bytes; messages one after the other
//   control    u32 kind, u32 number, u32 length, so many bytes of text (at most 1,000)
//              kind 1 + an ErrorKind: the sender's transport has ended with it, `number` is the ErrorCode; kind 0: the
//              sender waits for rank `number`, or, with ~0, no longer waits
//
// Bytes go directly between the message's memory and the kernel; only combined messages and those placed as several
// rows pass through a buffer. No thread of its own; nothing is allocated while it runs. With TLS, both directions pass
// through the connection's buffers, which grow at first.

#include <memory>

#include "execute/comm/tcp_mesh.h"
#include "execute/runtime/transport.h"

namespace systole {

struct TcpOptions {
  TcpMeshOptions mesh = {};
  Seconds patience = Seconds(60.0);
};

// Connects to the other ranks through the rendezvous, whose client has joined their generation. Errors: as
// connect_ranks.
Result<std::unique_ptr<Transport>> tcp_transport(RendezvousClient& rendezvous, std::int32_t rank,
                                                 std::int32_t num_ranks, const TcpOptions& options = {});

}  // namespace systole
