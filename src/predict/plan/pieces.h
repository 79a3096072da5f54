#pragma once
// The pieces of a stage's step: the work of a chunk of layers on a microbatch, and the work after all microbatches,
// once per step. Recorded from real Programs.

#include <vector>

#include "describe/program/program.h"
#include "predict/perf/step_record.h"

namespace systole {

struct ChunkPiece {
  ChunkRecord work;
  std::int64_t kept_by_layer = 0, kept = 0;  // saved activations of a microbatch, bytes: per layer, and the rest
  std::int64_t logits = 0;                   // as in MemoryParts
  std::vector<std::int64_t> dims;            // of all values in the functions, in order
  // Lower bounds on the bytes that backward works in, at moments of it (describe/program/live.h); of a sized piece at a
  // few moments only.
  std::vector<std::int64_t> live;
  std::int64_t live_in_layers = 0;  // of those, within a layer, as recorded; at other sizes: 0
};

struct AfterPiece {
  FunctionRecord work;
  std::vector<HandoverRecord> ties;
  std::int64_t parameters = 0, state = 0, gradients = 0;  // bytes
  std::int64_t reduced = 0;                               // at most: sums of gradients with memory of their own
  std::int64_t copies = 0;                                // as in MemoryParts, with half_copies
};

struct StagePieces {
  std::vector<ChunkPiece> chunks;
  AfterPiece after;
};
// REQUIRES: as stage_record's. `layers`: of the stage's chunks.
StagePieces pieces_of(const Program& program, const StageRecord& work, const PipelineStrategy& pipeline,
                      std::span<const std::int64_t> layers);

// The work after several chunks, computed from the work after each alone. Its messages are those of each chunk, or the
// same for all. Every count is the sum and a constant. The constant comes from a stage with as many chunks: `recorded`,
// compared with `alone`, its chunks' own at the same sizes. A chunk may lack a function of the stage: only a chunk with
// parameters tied to another stage adds up their gradients. Errors: unsupported: `recorded` has another form.
class AfterChunks {
 public:
  struct Source {
    std::size_t chunk, message;
  };
  using Sources = std::vector<Source>;  // by message
  static Result<AfterChunks> of(AfterPiece recorded, const std::vector<AfterPiece>& alone);
  AfterPiece at(const std::vector<AfterPiece>& alone) const;

 private:
  AfterPiece recorded_;
  bool alike_ = true;  // every chunk has all functions of the stage
  std::vector<std::int64_t> constants_;
  std::vector<Sources> messages_;  // by function
  Sources ties_;
};

}  // namespace systole
