#pragma once
// Composes a candidate's step from recorded pieces, without building its Programs: microseconds instead of tens of
// milliseconds.
//
// A step has two kinds of pieces (pieces.h): the work of a chunk of layers on a microbatch, and the work after all
// microbatches. Both depend on a candidate in few ways, so a few small real Programs have the pieces of all candidates:
//
//   chunk      first, last, middle, or the whole model. Its family: which axes exist, the sizes of `model`, `context`
//              and `expert`, the ZeRO stage, recomputation, one microbatch or several. Its sizes (linear_cost_model.h):
//              layers, rows of a microbatch on a device, fsdp
//   after      its family: the same without recomputation. Its sizes: layers, fsdp. For several chunks it is the sum of
//              theirs and a constant (AfterChunks)
//
// Whenever rows are sharded, a family is recorded with a data axis. Without that axis its messages drop out; all else
// is equal (but for dropout).
//
// Example: llama2-7b, fsdp=8 model=2, batch 64, 4 microbatches. The chunk is the whole model. It is recorded with 1 row
// and 64 rows on fsdp=2, and with 1 row on the largest fsdp that divides all sharded dims. A device has
// 64 / (4 × 8) = 2 rows, so every count is evaluated at 2 rows and fsdp=8, and a collective over "fsdp" has 8 members.
// Links and seconds come from step_parts.h, as for a Program.
//
// Where the sharding of ops changes with the number of rows, the range of rows is split until both ends agree. Where
// fsdp shards are padded with zeros, or the sharding of ops changes with fsdp, a family has a single fsdp. What cannot
// be composed is refused and must be counted from its Programs; nothing is approximated.

#include <array>
#include <map>
#include <memory>
#include <mutex>

#include "describe/spec/plan.h"
#include "predict/perf/stack.h"
#include "predict/perf/step_parts.h"
#include "predict/plan/corner_programs.h"
#include "predict/plan/linear_cost_model.h"

namespace systole {

template <typename Piece>
class PieceFamily;

struct ComposedCost {
  struct Stage {
    StageRecord work;
    // As in AfterPiece and ChunkPiece.
    std::int64_t parameters = 0, state = 0, gradients = 0, reduced = 0, copies = 0, logits = 0;
    std::vector<std::int64_t> kept;  // saved activations of a microbatch, by chunk
    std::int64_t live = 0;           // lower bound on what the last chunk's backward works in
  };
  StepRecord step;
  std::vector<std::shared_ptr<const Stage>> stages;
  // By stage, lower bound: parameters, state, gradients, saved activations, and what backward works in.
  std::vector<Bytes> arena;
  std::vector<Bytes> activations;              // of the arena, as in MemoryParts; lower bound
  Bytes state_bytes(std::size_t stage) const;  // parameters and the optimizer's state
  // Lower bound on the memory of a device of the stage that needs most.
  Bytes memory_at_least(const KernelChoice& kernels, const StackProfile& stack) const;
};

class Composer;
// The steps of rows of one length, and their share of all steps.
struct StepsOfLength {
  const Composer* composer = nullptr;
  double share = 1;
};

// Thread-safe.
class Composer {
 public:
  // `threads` build the Programs of a family. `shapes`: what an epoch has of the lengths of data.buckets; each length is
  // then composed by a composer of its own. Errors: Failure as make_model.
  Composer(Workload asked, Target target, int threads = 1, std::vector<PlannedShape> shapes = {});
  ~Composer();

  // Of each of its shapes, in their order; without shapes this composer alone.
  std::span<const StepsOfLength> steps() const { return steps_; }
  const std::vector<PlannedShape>& shapes() const { return shapes_; }
  // Of the rows that it composes; 0: the model's context.
  std::int64_t length() const { return length_.empty() ? 0 : length_.front(); }

  // Errors: unsupported: counts that are no function of sizes; else as make_job.
  Result<ComposedCost> compose(const Candidate& candidate, std::int64_t batch) const;

  // The record of a candidate that cannot be composed, from Programs built for counting only. The latest few thousand
  // are cached, for all offers. Errors: as make_job.
  Result<std::shared_ptr<const StepRecord>> counted(const Candidate& candidate, std::int64_t batch) const;

  // The whole model on one device, with a candidate's model, context, expert and recompute, one microbatch or several,
  // and parameters in as many shards as possible. Every candidate's layers do at least this, apart from collectives of
  // parameters and gradients. Errors: as compose.
  Result<ChunkPiece> layers_at_least(const Candidate& candidate, std::int64_t rows) const;
  std::int64_t parts_at_least(const Candidate& candidate) const;  // the number of those shards

  // The most microbatches between forward and backward, by stage and chunk.
  const std::vector<std::vector<int>>& in_flight(const PipelineStrategy& pipeline, std::int64_t microbatches) const;

  const Workload& asked() const { return asked_; }
  const Model& model() const { return *model_; }
  const Target& target() const { return target_; }
  std::int64_t layers() const { return layers_; }
  bool one_stack() const { return one_repeat_; }             // all layers are alike, in one stack
  std::int64_t programs() const { return corners_.made(); }  // made so far to record pieces

 private:
  struct Key {
    Candidate canonical;  // represents the family
    bool of_one_fsdp = true;
    auto operator<=>(const Key&) const = default;
  };
  template <typename Piece>
  using Families = std::map<Key, std::unique_ptr<PieceFamily<Piece>>>;

  template <typename Piece>
  PieceFamily<Piece>& family_of(Families<Piece>& families, const Key& key) const;
  template <typename Piece>
  Result<Piece> piece_at(Families<Piece>& families, Key key, std::size_t place, const PieceSizes& sizes) const;
  Result<ComposedCost::Stage> stage_of(const Candidate& candidate, std::int64_t stage, std::int64_t rows,
                                       const std::vector<std::int64_t>& layers) const;
  Result<AfterPiece> after_chunks(const Candidate& candidate, std::size_t place,
                                  const std::vector<AfterPiece>& alone) const;
  Key key_of(const Candidate& candidate) const;
  Key chunk_key(const Candidate& candidate) const;
  bool divides(std::int64_t fsdp, const Candidate& candidate) const;
  std::int64_t largest_fsdp(const Candidate& candidate) const;  // largest power of two that divides
  StretchRecord loss_sum(std::int64_t microbatches) const;
  void set_loss_sum(std::int64_t microbatches, StageRecord& last) const;

  struct Alone {
    std::int64_t length = 0;
  };
  Composer(Workload asked, Target target, int threads, Alone alone);

  const Workload asked_;
  const Target target_;
  const std::vector<std::int64_t> length_;  // as programs_of takes it
  std::vector<PlannedShape> shapes_;
  std::vector<std::unique_ptr<const Composer>> of_shapes_;
  std::vector<StepsOfLength> steps_;
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
