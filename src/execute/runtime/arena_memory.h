#pragma once
// The arena of a host device: one anonymous mapping, all of it resident from the start, so that what is planned is what
// is used and running out of memory happens before the first step.

#include <memory>

#include "execute/runtime/device.h"

namespace systole {

// Errors: does_not_fit when the system has not that much.
Result<std::unique_ptr<Memory>> allocate_arena(Bytes bytes);

}  // namespace systole
