#pragma once
// Runs on clusters with a predictable duration.

#include <fmt/format.h>

#include <string>

namespace systole {

// A line of shell that makes job.yaml a run of so many steps that compute rather than wait for each other: such a step
// takes about as long on a busy machine as on an idle one.
inline std::string slow_steps(int steps) {
  return fmt::format(
      "sed -i 's/hidden: ..,/hidden: [768, 768],/; s/batch: [0-9]*/batch: 256/; s/steps: [0-9]*/steps: {}/; "
      "s/every: [0-9]*/every: 20/' job.yaml",
      steps);
}

}  // namespace systole
