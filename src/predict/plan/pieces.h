#pragma once
// The pieces that a stage of a step is composed of: what a chunk of layers does with a microbatch, and what comes after
// all of them, once a step. Taken from real Programs.

#include <vector>

#include "describe/graph/program.h"
#include "predict/perf/step_record.h"

namespace systole {

struct ChunkPiece {
  ChunkRecord work;
  std::int64_t kept_by_layer = 0, kept = 0;  // bytes from forward to backward, of a microbatch: of a layer, and besides
  std::int64_t logits = 0;                   // as MemoryParts'
  std::vector<std::int64_t> dims;            // of all values that the functions make, in order
  // Bytes that backward works in at the least, at moments of it (describe/graph/live.h); of a sized piece at a few.
  std::vector<std::int64_t> live;
  std::int64_t live_in_layers = 0;  // of that by a layer alone, as it was recorded; of another size: 0
};

struct AfterPiece {
  FunctionRecord work;
  std::vector<HandoverRecord> ties;
  std::int64_t parameters = 0, state = 0, gradients = 0;  // bytes
  std::int64_t reduced = 0;                               // of sums of gradients in places of their own, at the most
  std::int64_t copies = 0;                                // as MemoryParts', with half_copies
};

struct StagePieces {
  std::vector<ChunkPiece> chunks;
  AfterPiece after;
};
// REQUIRES: as stage_record's. `layers`: of the stage's chunks.
StagePieces pieces_of(const Program& program, const StageRecord& work, const PipelineStrategy& pipeline,
                      std::span<const std::int64_t> layers);

// What comes after several chunks, out of what comes after each alone: its messages are those of each, or the same for
// all, and every count is the sum but for a constant, which is taken from a stage of as many chunks: `recorded` beside
// `alone`, its chunks' own at the same sizes. A chunk may lack a function that the stage has: one whose parameters are
// tied to another stage's adds up gradients that the others do not. Errors: unsupported: it is not so.
class AfterChunks {
 public:
  struct Source {
    std::size_t chunk, message;
  };
  using Sources = std::vector<Source>;  // of each message
  static Result<AfterChunks> of(AfterPiece recorded, const std::vector<AfterPiece>& alone);
  AfterPiece at(const std::vector<AfterPiece>& alone) const;

 private:
  AfterPiece recorded_;
  bool alike_ = true;  // every chunk has all of its functions
  std::vector<std::int64_t> constants_;
  std::vector<Sources> messages_;  // by function
  Sources ties_;
};

}  // namespace systole
