#pragma once
// What a stage of a step is made of, as a function of sizes: recorded from a few real Programs that differ in nothing
// but these sizes, and exact between them.
//
// Layers of a chunk enter dims as stacks of parameters, fsdp as what is stored in parts, each in proportion, so every
// count of a chunk's functions is
//
//   a + b layers + (c + d layers) / fsdp
//
// and every count of what comes after the chunks the same of the layers of all chunks. The Programs at the corners of a
// box give a, b, c and d, as integers. How ops are cut (partition/choose.h) goes by comparing bytes, which are linear
// in these sizes: a choice that is made at both ends is made between them. Rows are no size of a family, for they turn
// such choices round. Whatever is not so shows as records of unlike structure, or as a division with a rest, and is an
// error: nothing is approximated. The law search-is-program compares what comes out with the Programs themselves.

#include <optional>
#include <vector>

#include "describe/graph/program.h"
#include "predict/perf/step_record.h"

namespace systole {

// Bytes of a device's values, by what they are kept for.
struct ChunkMemory {
  std::int64_t of_layer = 0, once = 0;  // from forward to backward, a microbatch: by layer, and besides
};
struct StageMemory {
  std::int64_t parameters = 0, state = 0, gradients = 0;
  std::int64_t copies = 0, logits = 0;  // as MemoryParts', with half_copies
  std::vector<ChunkMemory> chunks;
};
// REQUIRES: as stage_record's. `layers`: of the stage's chunks.
StageMemory stage_memory(const Program& program, const PipelineStrategy& pipeline,
                         std::span<const std::int64_t> layers);

struct StageSizes {
  std::int64_t fsdp = 1;
  std::vector<std::int64_t> layers;  // of each of the stage's chunks
};

class StageFamily {
 public:
  struct Corner {
    StageSizes sizes;
    StageRecord work;
    StageMemory memory;
  };
  // `corners`: the first; with `staged` for each chunk one with other layers of it; and where fsdp cuts anything, all
  // of them again with another fsdp. Errors: unsupported: what is recorded is not such a function.
  static Result<StageFamily> of(std::span<const Corner> corners, bool staged);

  struct Stage {
    StageRecord work;
    StageMemory memory;
  };
  // Errors: unsupported: sizes between which the family was not recorded.
  Result<Stage> at(const StageSizes& sizes) const;

 private:
  // Counts as functions of sizes u and 1/fsdp: of each (1 + number of u) coefficients, and as many over fsdp.
  class Counts {
   public:
    // `values`: at each corner all counts; `sizes`: of each corner the u, the k-th differing from the first in u[k - 1]
    // alone; corners with the other fsdp behind them.
    static Result<Counts> through(const std::vector<std::vector<std::int64_t>>& values,
                                  const std::vector<std::vector<std::int64_t>>& sizes, std::int64_t fsdp,
                                  std::int64_t other_fsdp);
    // Of the n-th; nothing where fsdp does not divide.
    std::optional<std::int64_t> at(std::size_t n, std::span<const std::int64_t> u, std::int64_t fsdp) const;

   private:
    std::size_t terms_ = 1;
    std::vector<std::int64_t> whole_, part_;
  };

  Corner first_;
  bool staged_ = false;
  std::vector<Counts> chunks_;  // of each chunk, with stages by its layers
  Counts after_;                // with stages by layers of each chunk
};

}  // namespace systole
