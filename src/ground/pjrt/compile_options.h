#pragma once
// What a compiler of XLA's is asked for beside the program: how many devices, which of them, and its flags.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ground/base/result.h"

namespace systole::pjrt {

// A flag of XLA's: text, yes or no, a whole number, a real one.
using OptionValue = std::variant<std::string, bool, std::int64_t, double>;
// By name, "xla_dump_to" without dashes; of one name the last counts.
using CompilerFlags = std::vector<std::pair<std::string, OptionValue>>;

// "true", "3" and "0.5" as plain YAML has them, all else as text. Errors: invalid: a number that is out of range.
Result<OptionValue> option_value(std::string_view text);
// "true", "3", "0.5", "text".
std::string to_string(const OptionValue& value);
// `asked`, and before it those of `defaults` that it has no flag of the same name for.
CompilerFlags flags_over(const CompilerFlags& defaults, const CompilerFlags& asked);

struct CompileOptions {
  // replicas × partitions devices run the program. Collectives written out by channel (shardy's manual mode) want
  // partitions; replica groups want replicas.
  int replicas = 1, partitions = 1;
  bool spmd = false;    // partitions > 1 of one program
  bool shardy = false;  // the module holds `sdy`: without this its shardings are refused or ignored
  // Device ids [replica][partition], row-major; empty leaves it to the plugin.
  // A wrong one makes libtpu end the process: compile in a child.
  std::vector<std::int64_t> devices;
  CompilerFlags flags;  // unknown ones are refused
};

// A CompileOptionsProto. REQUIRES: replicas and partitions >= 1; `devices` empty or one for each of them.
std::string serialized(const CompileOptions& options);

}  // namespace systole::pjrt
