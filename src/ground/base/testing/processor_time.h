#pragma once
// How long this process has computed, its threads together. What a test promises of an algorithm's time it promises of
// this: on a machine that does other things too the time of day is theirs as well.

#include <time.h>

#include "ground/base/units.h"

namespace systole {

inline Seconds processor_time() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return Seconds(static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec));
}

}  // namespace systole
