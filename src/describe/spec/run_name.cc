#include "describe/spec/run_name.h"

#include <algorithm>

namespace systole {

std::optional<TakenForCheckpoint> taken_for_checkpoint(std::string name) {
  if (name.find('@') == name.npos) return std::nullopt;
  std::ranges::replace(name, '@', '-');
  return TakenForCheckpoint{"it has an '@', and NAME@STEP names a checkpoint", std::move(name)};
}

}  // namespace systole
