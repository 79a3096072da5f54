#pragma once
// What a StableHLO module states before a compiler reads it: for how many devices it was written, and how it is
// sharded. JAX and PyTorch/XLA write the attributes mhlo.num_partitions and mhlo.num_replicas, shardy a mesh:
//
//   module @jit_step attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
//     sdy.mesh @mesh = <["x"=4]>
//
// Text is scanned, not parsed: strings and comments are skipped, the rest is the compiler's work. Of bytecode
// (StableHLO's portable artifacts) only the head is read: the version that wrote it.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ground/base/result.h"

namespace systole::prove {

struct ModuleText {
  bool bytecode = false;
  std::string writer;                                // of bytecode: "StableHLO_v1.13.7"; "": not stated
  std::optional<std::int64_t> partitions, replicas;  // nothing: not stated
  bool shardy = false;                               // uses the dialect `sdy`
};

Error too_large(const std::string& file);

// Reads a file's bytes, unchecked. Errors: not_found: no such file, or a folder; invalid: too large; io.
Result<std::string> read_module(const std::string& path);

// `file` is named in errors. Time is linear in the code's length, for any input. Errors: invalid: nothing in it, too
// large, or neither text nor bytecode; a mesh of more devices than num_partitions; numbers that are no counts.
// unsupported: quantised types, which no XLA compiler has; some refuse them without a location.
Result<ModuleText> look_at(std::string_view code, const std::string& file);

// A word of a module's text, to locate the cause of a compiler's refusal.
struct ModuleWord {
  std::string word;
  int line = 0;
};
// The first numeric type that is not StableHLO's ("f8E9M9"). Nothing for bytecode.
std::optional<ModuleWord> foreign_float(std::string_view code);
// The line of a custom call with this name. Nothing for bytecode.
std::optional<int> line_of_custom_call(std::string_view code, std::string_view target);

// Reads "1.13.7" from "StableHLO_v1.13.7" or "1.13.7". Returns -1, 0 or 1: `a` is older than, equal to or newer than
// `b`; nothing: one of them is no version.
std::optional<int> compare_versions(std::string_view a, std::string_view b);

}  // namespace systole::prove
