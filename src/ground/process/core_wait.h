#pragma once
// How long a thread was ready to run while the machine ran something else: what Linux counts for it in
// /proc/<thread>/schedstat. A thread that is slow for want of a core is told from one that is slow by itself.

#include "ground/base/fd.h"
#include "ground/base/units.h"

namespace systole {

class CoreWait {
 public:
  CoreWait();  // of the thread that makes it
  // In all since the thread began; 0 where the system does not count. One system call, from any thread.
  Seconds so_far() const;

 private:
  Fd file_;
};

}  // namespace systole
