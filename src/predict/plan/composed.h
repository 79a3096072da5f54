#pragma once
// A candidate's step out of known pieces, without its Programs: microseconds instead of tens of milliseconds.
//
// What a chunk of layers does with a microbatch, and what comes after all microbatches, depend on a candidate in few
// ways, so that few small real Programs have the pieces (pieces.h) of all candidates:
//
//   a chunk    is the first, the last, one between or the whole model. Of a family: the axes that there are, the sizes
//              of `model`, `context` and `expert`, what is stored in parts, recomputing, one microbatch or several. By
//              size (sized.h): its layers, rows of a microbatch on a device, fsdp
//   after it   of a family: the same, without recomputing. By size: layers, fsdp. What comes after several chunks is
//              the sum but for a constant (AfterChunks)
//
// All whose rows are cut are recorded with an axis data; without one there are no messages over it, and all else is the
// same (but for dropout).
//
// llama2-7b, fsdp=8 model=2, batch 64, 4 microbatches: the chunk is the whole model, recorded with 1 row and 64 on
// fsdp=2, and with 1 row on the largest fsdp that divides what is stored. A device has 64 / (4 × 8) = 2 rows: every
// count is the one at 2 rows and fsdp=8, and a collective over "fsdp" has 8 parts. Its links and seconds are those of
// step_parts.h, as a Program's are.
//
// Where ops are cut in another way with more rows, the rows are split until both ends are alike. Where parts of fsdp
// are filled up with zeros, or ops are cut in another way at both ends, a family is of one fsdp alone. What cannot be
// composed is refused and must be counted from its Programs; nothing is approximated.

#include <array>
#include <map>
#include <memory>
#include <mutex>

#include "predict/perf/stack.h"
#include "predict/perf/step_parts.h"
#include "predict/plan/corner_programs.h"
#include "predict/plan/sized.h"

namespace systole {

template <typename Piece>
class PieceFamily;

struct Composed {
  struct Stage {
    StageRecord work;
    // As AfterPiece's and ChunkPiece's.
    std::int64_t parameters = 0, state = 0, gradients = 0, reduced = 0, copies = 0, logits = 0;
    std::vector<std::int64_t> kept;  // of each chunk, of a microbatch, from forward to backward
    std::int64_t live = 0;           // that the last chunk's backward works in, at the least
  };
  StepRecord step;
  std::vector<std::shared_ptr<const Stage>> stages;
  // By stage, at least: parameters, state, gradients, what is kept for backward and what backward works in.
  std::vector<Bytes> arena;
  std::vector<Bytes> activations;              // of it, as MemoryParts'; at least
  Bytes state_bytes(std::size_t stage) const;  // parameters and the optimizer's state
  // What a device needs at least, of the stage that needs most.
  Bytes memory_at_least(const KernelChoice& kernels, const StackProfile& stack) const;
};

// Thread-safe.
class Composer {
 public:
  // `threads`: that make the Programs of a family. Errors: Failure as make_model.
  Composer(Workload asked, Target target, int threads = 1);
  ~Composer();

  // Errors: unsupported: what is no function of sizes; else as make_job.
  Result<Composed> compose(const Candidate& candidate, std::int64_t batch) const;

  // What cannot be composed, out of its own Programs, made for counting alone. Of the latest few thousand each is made
  // once, for all offers. Errors: as make_job.
  Result<std::shared_ptr<const StepRecord>> counted(const Candidate& candidate, std::int64_t batch) const;

  // The whole model on a device, of a candidate's model, context, expert and recompute, with one microbatch or several,
  // its parameters in as many parts as can be: what every candidate's layers do at least, but for collectives of
  // parameters and gradients. Errors: as compose.
  Result<ChunkPiece> layers_at_least(const Candidate& candidate, std::int64_t rows) const;
  std::int64_t parts_at_least(const Candidate& candidate) const;  // as many

  // Of each chunk of each stage, microbatches that are between forward and backward, at the most.
  const std::vector<std::vector<int>>& in_flight(const PipelineStrategy& pipeline, std::int64_t microbatches) const;

  const Workload& asked() const { return asked_; }
  const Model& model() const { return *model_; }
  const Target& target() const { return target_; }
  std::int64_t layers() const { return layers_; }
  bool one_stack() const { return one_repeat_; }             // of layers, all alike
  std::int64_t programs() const { return corners_.made(); }  // made so far to record pieces

 private:
  struct Key {
    Candidate canonical;  // stands for all of the family
    bool of_one_fsdp = true;
    auto operator<=>(const Key&) const = default;
  };
  template <typename Piece>
  using Families = std::map<Key, std::unique_ptr<PieceFamily<Piece>>>;

  template <typename Piece>
  PieceFamily<Piece>& family_of(Families<Piece>& families, const Key& key) const;
  template <typename Piece>
  Result<Piece> piece_at(Families<Piece>& families, Key key, std::size_t place, const PieceSizes& sizes) const;
  Result<Composed::Stage> stage_of(const Candidate& candidate, std::int64_t stage, std::int64_t rows,
                                   const std::vector<std::int64_t>& layers) const;
  Result<AfterPiece> after_chunks(const Candidate& candidate, std::size_t place,
                                  const std::vector<AfterPiece>& alone) const;
  Key key_of(const Candidate& candidate) const;
  Key chunk_key(const Candidate& candidate) const;
  bool divides(std::int64_t fsdp, const Candidate& candidate) const;
  std::int64_t largest_fsdp(const Candidate& candidate) const;  // of the powers of two; that divides
  StretchRecord loss_sum(std::int64_t microbatches) const;
  void set_loss_sum(std::int64_t microbatches, StageRecord& last) const;

  const Workload asked_;
  const Target target_;
  std::unique_ptr<const Model> model_;
  std::int64_t layers_ = 0;
  bool one_repeat_ = false;

  mutable CornerPrograms corners_;
  mutable std::mutex mutex_;
  mutable Families<ChunkPiece> chunks_;
  mutable Families<AfterPiece> afters_;
  mutable std::map<std::pair<Key, std::size_t>, Result<AfterChunks>> after_chunks_;  // by place
  mutable std::map<std::array<std::int64_t, 3>, bool> divides_;                      // by fsdp, expert, model
  mutable std::map<std::array<std::int64_t, 2>, std::int64_t> largest_fsdp_;         // by expert, model
  mutable std::map<std::array<int, 4>, std::vector<std::vector<int>>> in_flight_;
  mutable std::map<std::int64_t, StretchRecord> loss_sums_;
  mutable std::map<std::pair<Candidate, std::int64_t>, Result<std::shared_ptr<const StepRecord>>> counted_;  // by batch
};

}  // namespace systole
