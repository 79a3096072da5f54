#pragma once
// Names of runs in commands; NAME@STEP names a checkpoint, not a run.

#include <optional>
#include <string>

namespace systole {

struct TakenForCheckpoint {
  const char* why;
  std::string instead;  // a similar name without '@'
};
// Nothing where `name` has no '@'.
std::optional<TakenForCheckpoint> taken_for_checkpoint(std::string name);

}  // namespace systole
