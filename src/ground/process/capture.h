#pragma once
// Run a program to its end and keep what it said.

#include "ground/process/spawn.h"

namespace systole {

struct CaptureOptions {
  std::string input = {};            // to its stdin
  Bytes limit = Bytes(1 << 20);      // kept of each stream; the rest is read and forgotten
  Seconds timeout = Seconds(600.0);  // then its group is killed
};

struct Captured {
  Exit exit;
  std::string out, err;
  bool truncated = false;  // of either stream
  bool timed_out = false;
};

// The command's own streams are not used. What the child left running in its group when it ended is killed.
// Errors: as Process::start; a bad exit is no error.
Result<Captured> run_captured(Command command, const CaptureOptions& options = {});

}  // namespace systole
