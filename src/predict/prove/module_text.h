#pragma once
// What a StableHLO module says of itself before any compiler reads it: for how many devices it was written, and how it
// is told to be cut. JAX and PyTorch/XLA write the attributes mhlo.num_partitions and mhlo.num_replicas, shardy a mesh:
//
//   module @jit_step attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
//     sdy.mesh @mesh = <["x"=4]>
//
// Text is scanned, not parsed: strings and comments are passed over, the rest is the compiler's work. Of bytecode
// (StableHLO's portable artifacts) only its head can be read: the version that wrote it.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ground/base/result.h"

namespace systole::prove {

struct ModuleText {
  bool bytecode = false;
  std::string writer;                                // of bytecode: "StableHLO_v1.13.7"; "" where it does not say
  std::optional<std::int64_t> partitions, replicas;  // nothing: the module does not say
  bool shardy = false;                               // it holds the dialect `sdy`
};

// Far above what compilers take: a module with all the weights of a small model in it.
inline constexpr std::size_t kLargestModule = std::size_t{1} << 30;
Error too_large(const std::string& file);

// `file` stands in errors. Time grows with the code's length, whatever is in it. Errors: invalid: nothing in it, too
// large, or neither text nor bytecode; a mesh of more devices than num_partitions; numbers that are no counts.
// unsupported: quantised types, which no compiler of XLA's has: some refuse them without saying where.
Result<ModuleText> look_at(std::string_view code, const std::string& file);

// A word of a module's text, for telling what a compiler's refusal is about.
struct ModuleWord {
  std::string word;
  int line = 0;
};
// The first type of numbers that is none of StableHLO's ("f8E9M9"). Nothing in bytecode.
std::optional<ModuleWord> foreign_float(std::string_view code);
// Where a custom call of this name is made. Nothing in bytecode.
std::optional<int> line_of_custom_call(std::string_view code, std::string_view target);

// "1.13.7" of "StableHLO_v1.13.7" and of "1.13.7" alone: -1, 0 or 1 as `a` is older than, as old as or newer than `b`;
// nothing where one of them is no version.
std::optional<int> compare_versions(std::string_view a, std::string_view b);

}  // namespace systole::prove
