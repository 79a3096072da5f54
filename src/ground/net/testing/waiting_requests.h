#pragma once
// For tests in which one client must wait at a rendezvous before another acts.

#include <chrono>
#include <thread>

#include "ground/net/rendezvous_server.h"

namespace systole {

// Waits until `requests` requests wait there. False: not within 20 s.
inline bool comes_to_wait(const RendezvousServer& server, std::size_t requests) {
  for (int look = 0; look < 10'000 && server.waiting() != requests; ++look)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  return server.waiting() == requests;
}

}  // namespace systole
