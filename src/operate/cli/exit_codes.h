#pragma once
// The process's exit codes, for scripts and schedulers.

#include <span>
#include <string>

#include "ground/base/error.h"
#include "ground/base/exit_code.h"

namespace systole::cli {

enum class ExitCode : int {
  done = kExitDone,
  no = kExitNo,
  usage = kExitUsage,
  missing = kExitMissing,
  unmet = kExitUnmet,
  saved = kExitSaved,
  not_saved = kExitNotSaved,
  over_budget = kExitOverBudget,
  interrupted = kExitInterrupted,
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
