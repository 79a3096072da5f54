#pragma once
// Who looks on while an agent leads: what happens to generations, and a moment now and then to look at the ranks
// themselves. Called in the agent's thread, which starts and reaps ranks: short.

#include <cstdint>
#include <string>

#include "ground/base/units.h"

namespace systole {

class LaunchWatch {
 public:
  virtual ~LaunchWatch() = default;
  virtual void starts(std::uint64_t generation, int ranks, Seconds now) = 0;
  // It is to end, with all its ranks; `rank`: the cause, or -1.
  virtual void ends(std::uint64_t generation, const std::string& cause, int rank, Seconds now) = 0;
  virtual void look(Seconds now) = 0;  // several times a second
};

}  // namespace systole
