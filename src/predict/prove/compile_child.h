#pragma once
// Runs a vendor's compiler in a child process, because it may abort, hang, exhaust the machine's memory or print
// anything. The two sides communicate through files of one folder:
//
//   module.mlir     the program                              request.json   what compiling it takes
//   started.json    which compiler this is, once it is loaded and knows the slice
//   answer.json     the result: memory and costs, or an error. Written last, and whole
//   optimized.pb    the program after optimisation           dump/          what the compiler writes on its way
//   out.txt, err.txt  what the process printed
//
// The child is this same executable, started with a hidden command that calls compile_here.

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

// Runs in the child. Success and failure of the compile both go to answer.json; an error here only means that the
// folder is not as the parent prepares it.
Status compile_here(const std::string& folder);

struct CompileRequest {
  std::string_view code;
  pjrt::CompileOptions options;  // flags for the dump are added
  std::string plugins;           // the folder of plugins
};

struct ChildProgress {
  Seconds time{};
  Bytes resident{};
  bool started = false;  // the compiler is loaded and has the program
};

struct ChildLimits {
  Seconds timeout{600.0};
  Bytes memory{};  // resident; 0: no limit
  // Called now and then.
  std::function<void(const ChildProgress&)> progress;
  std::function<bool()> stop;
  // Whether the files written so far are enough; if so, the child is ended.
  std::function<bool()> enough;
};

// Identifies the compiler.
struct CompilerFacts {
  std::string package, api, stablehlo, warning;  // "libtpu 0.0.51", "0.116", "1.13.7"; "": unknown
  std::optional<Bytes> memory_limit;             // of a device: the memory that a program may use
};

struct CompilerReport {
  CompilerFacts compiler;
  std::optional<Error> refusal;             // of the program: does_not_fit, invalid, …
  std::optional<pjrt::MemoryStats> memory;  // nothing: `enough` ended the compile early
  std::optional<double> flops, bytes_accessed;
  Seconds time{};
  Bytes peak_resident{};
  std::string module_format;  // of optimized.pb; "": there is none
  std::string words;          // the last line of the child's stderr that means something
};

// `child`: the command line that starts compile_here; the folder is appended. `folder` exists and is empty.
// Errors: unsupported: no such plugin, or one that cannot be used (3); does_not_fit: more than limits.memory;
// interrupted; io: the process failed or hung, with its last words.
Result<CompilerReport> compile_in_child(const std::vector<std::string>& child, const std::string& folder,
                                        const Slice& slice, const CompileRequest& request, const ChildLimits& limits);

}  // namespace systole::prove
