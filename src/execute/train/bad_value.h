#pragma once
// Where the first value that is no number came about, on which of several ranks: the step is run once more and every
// kernel's results are looked at. All ranks do it together, because their collectives belong to it.

#include <optional>
#include <string>

#include "execute/runtime/communicator.h"
#include "execute/runtime/executor.h"

namespace systole {

// After a step whose gradient was not finite and that changed nothing. What this rank made first, with step, layer, op
// and value; nothing when its values are numbers or another rank was earlier.
// Errors: of the device and of the transport; unsupported where the device does not run kernel by kernel.
Result<std::optional<std::string>> first_bad_value(Executor& executor, const Schedule& train, ActionRange range,
                                                   std::int64_t step, Communicator& ranks);

}  // namespace systole
