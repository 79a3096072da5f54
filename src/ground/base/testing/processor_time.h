#pragma once
// CPU time of this process, all threads together. Tests of an algorithm's time use it, since wall time depends on what
// else the machine does.

#include <time.h>

#include "ground/base/units.h"

namespace systole {

inline Seconds processor_time() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return Seconds(static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec));
}

}  // namespace systole
