#pragma once
// Runs a program to its end and captures its output.

#include "ground/process/spawn.h"

namespace systole {

struct CaptureOptions {
  std::string input = {};            // written to its stdin
  Bytes limit = Bytes(1 << 20);      // of each captured stream; the rest is read and dropped
  Seconds timeout = Seconds(600.0);  // after it the group is killed
};

struct Captured {
  Exit exit;
  std::string out, err;
  bool truncated = false;  // of either stream
  bool timed_out = false;
};

// Replaces the streams of the command. Kills whatever the child left running in its group.
// Errors: as Process::start; a nonzero exit is not an error.
Result<Captured> run_captured(Command command, const CaptureOptions& options = {});

}  // namespace systole
