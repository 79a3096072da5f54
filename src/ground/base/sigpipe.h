#pragma once
// SIGPIPE of a thread that writes to pipes and sockets whose readers may go.

#include <csignal>

namespace systole {

// On this thread it is then an error of write().
inline void block_sigpipe() {
  sigset_t pipe;
  ::sigemptyset(&pipe);
  ::sigaddset(&pipe, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
}

}  // namespace systole
