#pragma once
// Options of an XLA compilation: the number of devices, their assignment, and flags.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ground/base/result.h"

namespace systole::pjrt {

// The value of an XLA flag: text, boolean, integer or real number.
using OptionValue = std::variant<std::string, bool, std::int64_t, double>;
// By name, "xla_dump_to" without dashes; the last of equal names wins.
using CompilerFlags = std::vector<std::pair<std::string, OptionValue>>;

// Parses "true", "3" and "0.5" as plain YAML does; anything else is text. Errors: invalid: a number out of range.
Result<OptionValue> option_value(std::string_view text);
// "true", "3", "0.5", "text".
std::string to_string(const OptionValue& value);
// `asked`, preceded by the flags of `defaults` whose names are not in `asked`.
CompilerFlags flags_over(const CompilerFlags& defaults, const CompilerFlags& asked);

struct CompileOptions {
  // The program runs on replicas × partitions devices. Collectives by channel (shardy's manual mode) need partitions;
  // replica groups need replicas.
  int replicas = 1, partitions = 1;
  bool spmd = false;    // SPMD: one program for partitions > 1
  bool shardy = false;  // the module contains `sdy`: without this its shardings are refused or ignored
  // Device ids [replica][partition], row-major; empty leaves the choice to the plugin.
  // An invalid assignment makes libtpu end the process: compile in a child.
  std::vector<std::int64_t> devices;
  CompilerFlags flags;  // unknown ones are refused
};

// A CompileOptionsProto. REQUIRES: replicas and partitions >= 1; `devices` empty or one per replica and partition.
std::string serialized(const CompileOptions& options);

}  // namespace systole::pjrt
