#pragma once
// A candidate's step out of known pieces, without its Programs: microseconds instead of tens of milliseconds.
//
// The functions of a device depend on a candidate's sizes in few ways (stage_family.h), so candidates that differ in
// nothing but sizes are one family, and a family is a few small real Programs:
//
//   the same for all of a family   the axes that there are, the size of `model`, what is stored in parts, recomputing,
//                                  chunks of a stage, one microbatch or several, rows of one on a device
//   sizes within it                pipe, data, fsdp, layers of each chunk, microbatches
//
// llama2-7b, fsdp=8 model=2, batch 64, 4 microbatches: a device has 64 / (4 × 8) = 2 rows, so the family is "fsdp,
// model=2, parameters in parts, several microbatches, 2 rows", recorded on fsdp=2 and on the largest fsdp that divides
// what is stored. Every count is the one at fsdp=8, and a collective over "fsdp" has 8 parts. Its links and seconds are
// those of step_parts.h, as a Program's are.
//
// Where parts of fsdp are filled up with zeros, or ops are cut in another way at both ends, a family is of one fsdp
// alone. What cannot be composed is refused and must be counted from its Programs; nothing is approximated.

#include <map>
#include <memory>
#include <mutex>

#include "predict/perf/stack.h"
#include "predict/perf/step_parts.h"
#include "predict/plan/candidate.h"
#include "predict/plan/stage_family.h"

namespace systole {

struct Composed {
  StepRecord step;
  std::vector<std::shared_ptr<const StageFamily::Stage>> stages;
  std::vector<Bytes> arena;  // by stage, at least: parameters, state, gradients and what is kept for backward
  Bytes state_bytes(std::size_t stage) const;  // parameters and the optimizer's state
  // What a device needs at least, of the stage that needs most.
  Bytes memory_at_least(const KernelChoice& kernels, const StackProfile& stack) const;
};

// Thread-safe.
class Composer {
 public:
  // Errors: Failure as make_model.
  Composer(Workload asked, Target target);

  // Errors: unsupported: what is no function of sizes; else as make_job.
  Result<Composed> compose(const Candidate& candidate, std::int64_t batch) const;

  const Workload& asked() const { return asked_; }
  const Model& model() const { return *model_; }
  const Target& target() const { return target_; }
  std::int64_t layers() const { return layers_; }

 private:
  struct Family {
    std::once_flag once;
    std::optional<Error> problem;
    std::vector<StageFamily> stages;  // the only one; or the first, one in the middle, the last
  };
  struct Key {
    Candidate canonical;    // stands for all of the family
    std::int64_t rows = 1;  // of a microbatch on a device
    bool of_one_fsdp = true;
    auto operator<=>(const Key&) const = default;
  };
  const Family& family_of(const Key& key) const;
  void record(const Key& key, Family& family) const;
  Key key_of(const Candidate& candidate, std::int64_t rows) const;
  bool divides(std::int64_t fsdp, std::int64_t model) const;
  std::int64_t largest_fsdp(std::int64_t model) const;  // of the powers of two; that divides
  const std::vector<std::vector<int>>& slots_of(const PipelineStrategy& pipeline, int microbatches) const;
  StretchRecord loss_sum(std::int64_t microbatches) const;

  const Workload asked_;
  const Target target_;
  std::unique_ptr<const Model> model_;
  std::int64_t layers_ = 0;
  bool one_repeat_ = false;

  mutable std::mutex mutex_;
  mutable std::map<Key, std::unique_ptr<Family>> families_;
  mutable std::map<std::pair<std::int64_t, std::int64_t>, bool> divides_;
  mutable std::map<std::array<int, 4>, std::vector<std::vector<int>>> slots_;
  mutable std::map<std::int64_t, StretchRecord> loss_sums_;
};

}  // namespace systole
