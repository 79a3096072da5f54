#pragma once
// What the process's exit code says, for scripts and for whoever starts us again.

#include <span>
#include <string>

#include "ground/base/error.h"

namespace systole::cli {

enum class ExitCode : int {
  done = 0,
  no = 1,             // it ran, and the answer is no
  usage = 2,          // the command line or a document is wrong
  missing = 3,        // this machine or build lacks something
  saved = 75,         // stopped with a state saved: run again to go on (EX_TEMPFAIL)
  not_saved = 76,     // stopped without one
  over_budget = 77,   // stopped by its budget: begun again it would stop at once
  interrupted = 130,  // 128 + SIGINT
};

struct ExitCodeText {
  ExitCode code;
  const char* name;
  const char* meaning;
};
std::span<const ExitCodeText> exit_codes();

ExitCode exit_code_of(ErrorKind kind);

std::string exit_codes_help();       // `systole help exit-codes`
std::string exit_codes_reference();  // docs/reference/exit-codes.md

}  // namespace systole::cli
