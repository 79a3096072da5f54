#pragma once
// Runs a program that a model wrote: in a folder of its own, with little environment, bounded time, bounded memory of
// each process and size of each file, and in namespaces of its own without a network and with all its processes, which
// end with it (`unshare` of util-linux).
//
// It is no protection of files: the program may read and write what the user may.

#include <memory>
#include <string>

#include "execute/serve/eval/programs.h"

namespace systole {

class ProgramSandbox {
 public:
  // `unsafe`: without namespaces where this machine gives none. Errors: unsupported: it gives none.
  static Result<ProgramSandbox> open(bool unsafe);

  bool isolates() const { return !prefix_.empty(); }
  // Errors: not_found: there is no such command; io, no_space: of its folder.
  Result<ProgramTrial> run(const ProgramSpec& spec, const std::string& text) const;

 private:
  std::vector<std::string> prefix_;  // of the command
};

}  // namespace systole
