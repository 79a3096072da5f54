#pragma once
// Reads what the compiler writes to its dump folder (xla_dump_to) before it generates code: the optimised module, with
// its buffer assignment.

#include <optional>
#include <string>

#include "ground/base/result.h"
#include "predict/prove/executed.h"
#include "predict/prove/proof.h"

namespace systole::prove {

struct Dump {
  std::optional<CompiledMemory> memory;
  std::optional<ExecutedModule> executed;
};

// Whether everything that read_dump reads is there and complete.
bool dump_is_whole(const std::string& folder);

// Reads as much as there is. Errors: corrupt, io.
Result<Dump> read_dump(const std::string& folder);

}  // namespace systole::prove
