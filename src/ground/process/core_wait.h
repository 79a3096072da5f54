#pragma once
// The time that a thread was ready to run but had no core, as Linux counts it in /proc/<thread>/schedstat. It tells a
// thread that lacks a core from one that is slow by itself.

#include "ground/base/fd.h"
#include "ground/base/units.h"

namespace systole {

class CoreWait {
 public:
  CoreWait();  // of the calling thread
  // Total since the thread began; 0 if the system does not count it. One system call, from any thread.
  Seconds so_far() const;

 private:
  Fd file_;
};

}  // namespace systole
