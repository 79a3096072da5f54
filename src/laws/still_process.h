#pragma once
// A child stopped where it writes its result, to be looked at with all its work behind it: its stdout is a pipe that is
// full already.

#include <string>

#include "ground/process/spawn.h"

namespace systole::laws {

// The paths that the child has mapped when it comes to write to stdout, a line each (/proc/PID/maps); then lets it end.
// Errors: invalid when it ends before, or badly.
Result<std::string> mapped_at_its_end(Command command);

}  // namespace systole::laws
