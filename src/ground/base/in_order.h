#pragma once
// A pipeline over a few threads whose outcome does not depend on how many: units are filled one after another on this
// thread, worked on by all, and used one after another on this thread, in the order that they were filled.

#include <cstddef>
#include <functional>

#include "ground/base/result.h"

namespace systole {

struct OrderedSteps {
  // Fills the unit of this slot; false if nothing is left to fill it with.
  std::function<Result<bool>(std::size_t slot)> fill;
  // Called from any of the threads, for several slots at once.
  std::function<void(std::size_t slot)> work;
  std::function<Status(std::size_t slot)> use;
};

// Units that are filled before the first is used.
std::size_t ordered_slots(int threads);

// Errors: those of `fill`, once all units before have been used; those of `use`, at once. An exception of a step is
// rethrown here. REQUIRES: threads >= 1.
Status run_in_order(int threads, const OrderedSteps& steps);

}  // namespace systole
