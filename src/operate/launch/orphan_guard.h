#pragma once
// Guarantees that no rank outlives its agent, however the agent ends. The kernel kills a child with its parent on
// request, but not the child's own children. So a small guard process keeps the ids of the ranks' process groups. The
// socket to the agent closes whenever the agent dies; then the guard kills all groups.
//
// The guard is a fork without exec that calls only what signal-safety(7) allows, so it needs no installed program.

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
  ~OrphanGuard();  // kills the groups that it still knows

  int socket() const { return socket_.get(); }  // for Command::announce: a child registers itself
  void forget(pid_t group);                     // it was reaped; its id may be reused
  pid_t pid() const { return pid_; }
  bool alive();
  // Replaces a guard that was killed; the new one knows these groups.
  Status revive(const std::vector<pid_t>& groups);

 private:
  OrphanGuard() = default;
  Fd socket_;
  pid_t pid_ = -1;
};

}  // namespace systole
