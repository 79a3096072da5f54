#pragma once
// An observer of the leading agent: is told about generations, and is called now and then to look at the ranks. Called
// in the agent's thread, which starts and reaps ranks, so calls must be short.

#include <cstdint>
#include <string>

#include "ground/base/units.h"

namespace systole {

class LaunchWatch {
 public:
  virtual ~LaunchWatch() = default;
  virtual void starts(std::uint64_t generation, int ranks, Seconds now) = 0;
  // The generation will end, with all its ranks; `rank`: the cause, or -1.
  virtual void ends(std::uint64_t generation, const std::string& cause, int rank, Seconds now) = 0;
  virtual void look(Seconds now) = 0;  // several times a second
};

}  // namespace systole
