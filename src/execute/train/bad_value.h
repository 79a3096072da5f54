#pragma once
// Finds the first NaN or infinity of a step, and its rank: the step runs once more, and every kernel's results are
// checked. All ranks take part, because the step has collectives.

#include <optional>
#include <string>

#include "execute/runtime/communicator.h"
#include "execute/runtime/executor.h"

namespace systole {

// Call after a step whose gradient was not finite and that changed nothing. Describes the first bad value of this rank
// with step, layer, op and value; empty if there is none or another rank was earlier.
// Errors: of the device and of the transport; unsupported if the device does not run kernel by kernel.
Result<std::optional<std::string>> first_bad_value(Executor& executor, const Schedule& train, ActionRange range,
                                                   std::int64_t step, Communicator& ranks);

}  // namespace systole
