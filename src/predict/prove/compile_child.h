#pragma once
// A vendor's compiler in a process of its own, for it may abort, hang, eat the machine's memory or write what it likes.
// The two sides speak through files of one folder:
//
//   module.mlir     the program                              request.json   what compiling it takes
//   started.json    which compiler this is, once it is loaded and knows the slice
//   answer.json     what it said: memory and costs, or its error. Written last, and whole
//   optimized.pb    the program after optimisation           dump/          what the compiler writes on its way
//   out.txt, err.txt  what the process printed
//
// The child is this program, started with a hidden command that calls compile_here.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ground/base/result.h"
#include "ground/base/units.h"
#include "ground/pjrt/compile_options.h"
#include "ground/pjrt/executable.h"
#include "predict/prove/slice.h"

namespace systole::prove {

// In the child. What the compiler says of the program, good or bad, is in answer.json; an error is only a folder that
// is not as the parent makes it.
Status compile_here(const std::string& folder);

struct CompileRequest {
  std::string_view code;
  pjrt::CompileOptions options;  // the dump's flags are added
  std::string plugins;           // the folder of plugins
};

struct ChildProgress {
  Seconds time{};
  Bytes resident{};
  bool started = false;  // the compiler is loaded, the program is with it
};

struct ChildLimits {
  Seconds timeout{600.0};
  Bytes memory{};  // resident; 0: as much as there is
  // Called every now and then.
  std::function<void(const ChildProgress&)> progress;
  std::function<bool()> stop;
  // Whether the files that are there are enough: the child is ended then.
  std::function<bool()> enough;
};

// What the compiler is.
struct CompilerFacts {
  std::string package, api, stablehlo, warning;  // "libtpu 0.0.51", "0.116", "1.13.7"; "" where nobody says
  std::optional<Bytes> memory_limit;             // of a device: what it gives to a program
};

struct CompilerSaid {
  CompilerFacts compiler;
  std::optional<Error> refusal;             // of the program: does_not_fit, invalid, …
  std::optional<pjrt::MemoryStats> memory;  // nothing: `enough` ended it before its end
  std::optional<double> flops, bytes_accessed;
  Seconds time{};
  Bytes peak_resident{};
  std::string module_format;  // of optimized.pb; "": there is none
  std::string words;          // of its process: the last line of stderr that means something
};

// `child`: the words that start compile_here, to which the folder is added. `folder` is there and empty.
// Errors: unsupported: no such plugin, or one that cannot be used (3); does_not_fit: more than limits.memory;
// interrupted; io: the process ended badly or hung, with its last words.
Result<CompilerSaid> compile_in_child(const std::vector<std::string>& child, const std::string& folder,
                                      const Slice& slice, const CompileRequest& request, const ChildLimits& limits);

}  // namespace systole::prove
