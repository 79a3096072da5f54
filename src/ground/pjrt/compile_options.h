#pragma once
// What a compiler of XLA's is asked for beside the program: how many devices, which of them, and its flags.

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace systole::pjrt {

// A flag of XLA's: text, yes or no, a whole number, a real one.
using OptionValue = std::variant<std::string, bool, std::int64_t, double>;

struct CompileOptions {
  // replicas × partitions devices run the program. Collectives written out by channel (shardy's manual mode) want
  // partitions; replica groups want replicas.
  int replicas = 1, partitions = 1;
  bool spmd = false;    // partitions > 1 of one program
  bool shardy = false;  // the module holds `sdy`: without this its shardings are refused or ignored
  // Device ids [replica][partition], row-major; empty leaves it to the plugin.
  // A wrong one makes libtpu end the process: compile in a child.
  std::vector<std::int64_t> devices;
  std::vector<std::pair<std::string, OptionValue>> flags;  // "xla_dump_to" without dashes; unknown ones are refused
};

// A CompileOptionsProto. REQUIRES: replicas and partitions >= 1; `devices` empty or one for each of them.
std::string serialized(const CompileOptions& options);

}  // namespace systole::pjrt
