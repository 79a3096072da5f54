#pragma once
// Holds a child when it writes its result, after all its work, to examine it: its stdout is a pipe that is already
// full.

#include <string>

#include "ground/process/spawn.h"

namespace systole::laws {

// The paths that the child has mapped when it writes to stdout, one per line (/proc/PID/maps); then lets it end.
// Errors: invalid if it ends before, or fails.
Result<std::string> mapped_at_its_end(Command command);

}  // namespace systole::laws
