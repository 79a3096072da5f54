#pragma once
// Messages about runs to people. The starter of a run, or who follows it, shows them; nothing below the command line
// prints.

#include <functional>
#include <string>

#include "ground/base/clock.h"
#include "ground/base/error.h"

namespace systole {

// All are set. Called from several threads, possibly at once.
struct RunMessages {
  std::function<void(const std::string&)> message;  // one line beside the output
  std::function<void(const std::string&)> notice;   // sentences beside the output; may be wrapped
  std::function<void(const std::string&)> line;     // one line of the run's own output
  std::function<void(const Error&)> warning;        // a problem that does not end the run
};

// The surroundings of a run, from its starter.
struct RunScene {
  RunMessages messages;
  Clock& clock;
  std::string command_line;  // as typed, for the run's records
};

}  // namespace systole
