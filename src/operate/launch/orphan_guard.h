#pragma once
// No rank outlives its agent, however the agent ends. A child that the kernel ties to its parent dies with it, but what
// that child started does not; so a small process of its own keeps the numbers of the ranks' process groups, and when
// the socket to the agent closes, which no kill can prevent, it kills them all.
//
// It is a fork without exec that calls only what signal-safety(7) allows: nothing is to be installed for it.

#include <sys/types.h>

#include <vector>

#include "ground/base/fd.h"
#include "ground/base/result.h"

namespace systole {

class OrphanGuard {
 public:
  // Errors: io (no more processes).
  static Result<OrphanGuard> start();
  OrphanGuard(OrphanGuard&& other) noexcept;
  OrphanGuard& operator=(OrphanGuard&& other) noexcept;
  ~OrphanGuard();  // the groups that it still knows are killed

  int socket() const { return socket_.get(); }  // for Command::announce: a child makes itself known
  void forget(pid_t group);                     // it was reaped; its number may be another's
  pid_t pid() const { return pid_; }
  bool alive();
  // A new one in the place of one that was killed, knowing these groups.
  Status revive(const std::vector<pid_t>& groups);

 private:
  OrphanGuard() = default;
  Fd socket_;
  pid_t pid_ = -1;
};

}  // namespace systole
