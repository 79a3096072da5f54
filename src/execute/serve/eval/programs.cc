#include "execute/serve/eval/programs.h"

namespace systole {

double pass_at_k(std::int64_t samples, std::int64_t passed, std::int64_t k) {
  CHECK(0 <= passed && passed <= samples && 1 <= k && k <= samples, "{} of {} passed, k is {}", passed, samples, k);
  double none = 1;  // the chance that k samples have none that passed
  for (std::int64_t i = samples - passed + 1; i <= samples; ++i)
    none *= i > k ? 1 - static_cast<double>(k) / static_cast<double>(i) : 0;
  return 1 - none;
}

}  // namespace systole
