#pragma once
// Proves a program: the vendor's compiler compiles it for a slice that need not be rented yet, in a child process. The
// proof tells what memory a device needs, which collectives the program has and, if the compile runs to its end, its
// cycles.
//
// The verdict on memory comes first. The compiler writes its memory layout before it generates code, which takes most
// of its time; without `whole`, it is ended there.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ground/base/clock.h"
#include "ground/pjrt/compile_options.h"
#include "predict/prove/compile_child.h"
#include "predict/prove/proof.h"
#include "predict/prove/proof_cache.h"
#include "predict/prove/slice.h"

namespace systole::prove {

struct ProveOptions {
  std::vector<std::string> child;                    // the command line that starts compile_here; a folder is appended
  std::string plugins;                               // the folder of plugins: ground/pjrt/places.h
  std::string temporary;                             // a folder for the compile's files; left as it was
  bool fresh = false;                                // does not read the cache
  bool whole = false;                                // compiles until code is generated, for cycles and FLOPs
  pjrt::CompilerFlags flags;                         // flags of XLA; they override those of the slice's chip
  std::optional<std::int64_t> partitions, replicas;  // nothing: as the module states, else 1
  ChildLimits limits;                                // `enough` is ignored
};

struct Proved {
  Proof proof;
  bool cached = false;
  std::vector<Error> notes;  // a plugin newer than those tested, a cache that cannot be written
};

// `code`: StableHLO, as text or bytecode; `file` is named in errors. `cache` may be null. A program that does not fit
// is no error: the proof says so. Errors: invalid: a module that does not parse, with its line; more devices than the
// slice has; a flag that the compiler does not know; not_found: a slice that the compiler does not know; unsupported:
// no plugin, one that cannot be used, StableHLO newer than it reads, an op that it does not compile; does_not_fit: the
// compiler itself took more than limits.memory; interrupted; io: the compiler failed, or hung.
Result<Proved> prove(std::string_view code, const std::string& file, const Slice& slice, const ProveOptions& options,
                     ProofCache* cache, Clock& clock);

}  // namespace systole::prove
