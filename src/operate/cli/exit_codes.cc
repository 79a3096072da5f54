#include "operate/cli/exit_codes.h"

#include <iterator>

namespace systole::cli {
namespace {

constexpr ExitCodeText kCodes[] = {
    {ExitCode::done, "done", "it did what was asked"},
    {ExitCode::no, "no", "it ran, and the answer is no: does not fit, failed, diverged, damaged, differs"},
    {ExitCode::usage, "usage", "the command line or a document is wrong; nothing was started"},
    {ExitCode::missing, "missing", "this machine or this build lacks what was asked for: a device, a type, an op"},
    {ExitCode::unmet, "not met", "a result is not as good as --require says"},
    {ExitCode::saved, "stopped, saved",
     "stopped by a signal with its state saved: `systole resume`, or the same `systole batch` again, goes on from "
     "there"},
    {ExitCode::not_saved, "stopped, not saved",
     "stopped by a signal before the state could be saved: `systole resume` goes on from the checkpoint before"},
    {ExitCode::over_budget, "stopped, budget used",
     "stopped at its budget: `systole resume RUN --set objective.budget=DOLLARS` goes on with more"},
    {ExitCode::interrupted, "interrupted", "interrupted (Ctrl-C); what was saved before is still there"},
};

}  // namespace

std::span<const ExitCodeText> exit_codes() { return kCodes; }

ExitCode exit_code_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::invalid:
    case ErrorKind::not_found: return ExitCode::usage;
    case ErrorKind::unsupported: return ExitCode::missing;
    case ErrorKind::interrupted: return ExitCode::interrupted;
    case ErrorKind::exists:
    case ErrorKind::does_not_fit:
    case ErrorKind::no_space:
    case ErrorKind::io:
    case ErrorKind::corrupt:
    case ErrorKind::busy:
    case ErrorKind::internal: return ExitCode::no;
  }
  return ExitCode::no;
}

std::string exit_codes_help() {
  std::string text;
  for (const ExitCodeText& c : kCodes) text += fmt::format("{:>5}  {}\n", static_cast<int>(c.code), c.meaning);
  return text;
}

std::string exit_codes_reference() {
  std::string text =
      "# Exit codes\n\nPrinted by `systole reference docs/reference`; a test fails when this page is stale.\n\n"
      "| code | name | meaning |\n|-----:|------|---------|\n";
  for (const ExitCodeText& c : kCodes)
    text += fmt::format("| {} | {} | {} |\n", static_cast<int>(c.code), c.name, c.meaning);
  return text +
         "\nErrors of kind `invalid` and `not_found` end with 2, `unsupported` with 3, `interrupted` with 130, all\n"
         "others with 1.\n";
}

}  // namespace systole::cli
