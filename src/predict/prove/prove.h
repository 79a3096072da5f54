#pragma once
// Proves a program: the vendor's compiler compiles it for a slice that nobody has rented yet, in a child process, and
// says what memory a device needs, which collectives it makes and, when it is let to its end, its cycles.
//
// The verdict on memory comes first. The compiler writes down how it lays out memory before it generates code, which
// takes most of its time: unless `whole` is asked for, it is ended there.

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
  std::vector<std::string> child;                    // the words that start compile_here, to which a folder is added
  std::string plugins;                               // where they are: ground/pjrt/places.h
  std::string temporary;                             // a folder for what compiling writes; it is left as it was
  bool fresh = false;                                // without looking into the cache
  bool whole = false;                                // until code is generated, for cycles and FLOPs
  pjrt::CompilerFlags flags;                         // of XLA's; they win over those of the slice's chip
  std::optional<std::int64_t> partitions, replicas;  // nothing: as the module says, else 1
  ChildLimits limits;                                // `enough` is not used
};

struct Proved {
  Proof proof;
  bool cached = false;
  std::vector<Error> notes;  // a plugin newer than those that were tried, a cache that cannot be written
};

// `code`: StableHLO, as text or bytecode; `file` stands in errors. `cache` may be null.
// That a program does not fit is no error: the proof says so. Errors: invalid: a module that does not parse, with its
// line; more devices than the slice has; a flag that the compiler does not know; not_found: a slice that it does not
// know; unsupported: no plugin, one that cannot be used, StableHLO newer than it reads, an op that it does not compile;
// does_not_fit: the compiler itself took more than limits.memory; interrupted; io: it ended badly, or hung.
Result<Proved> prove(std::string_view code, const std::string& file, const Slice& slice, const ProveOptions& options,
                     ProofCache* cache, Clock& clock);

}  // namespace systole::prove
