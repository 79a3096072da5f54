#pragma once
// Puts a batch into the input slots of a Program: microbatch by microbatch, the last filled up with empty rows (labels
// -1, zeros elsewhere), which count in no loss. On a mesh every rank has the whole batch and puts its own rows in;
// exact: those of its logical shards. Over an axis context it puts in its own tokens of them, in zigzag order.

#include <string>
#include <vector>

#include "execute/runtime/executor.h"
#include "execute/train/source.h"

namespace systole {

class Feed {
 public:
  // Inputs are the values named `prefix` + the batch's names ("evaluate/" for evaluation).
  // `device`: the rank's number in the Program's mesh.
  Feed(Executor& executor, std::string prefix, std::int64_t device = 0)
      : executor_(executor), prefix_(std::move(prefix)), place_(executor.program().mesh.coordinates(device)) {}

  // Errors: invalid when an id is outside the vocabulary (`vocabulary` 0: not checked), or the batch has not all that
  // the Program takes; io of the device. In a pipeline what is another stage's is left to it.
  Status put(const StepBatch& batch, std::int64_t vocabulary);

  Status put_scalar(std::string_view name, double number, int slot = 0);
  // This rank's place on each axis, as far as the Program asks for it.
  Status put_coordinates();
  // For each microbatch: where its rows begin in the batch ("row"); `rows` of a microbatch of all ranks.
  Status put_rows(std::int64_t rows);

 private:
  struct Target {
    std::string_view name;
    int value = -1;
    int slots = 1;
    std::int64_t slot_bytes = 0;
    std::int64_t slot_rows = 0;  // of a microbatch of all ranks
    std::int64_t first_row = 0;  // of them this rank's
    int of_a_shard = 0;          // exact: microbatches of a shard, whose rows lie together
    bool is_labels = false;
    // Of each row this rank's bytes; none: all.
    struct Run {
      std::int64_t from = 0, bytes = 0;
    };
    std::vector<Run> runs;
  };
  const Target& target_of(const InputRows& input);
  Status check_names(const StepBatch& batch) const;
  std::vector<Target::Run> runs_of(const ProgramValue& value) const;
  // The rows of a slot, which begin at `row` of the batch.
  static void fill(const Target& target, const InputRows& input, std::int64_t row, std::int64_t rows,
                   std::span<std::byte> slot);

  Executor& executor_;
  std::string prefix_;
  Coordinates place_;
  std::vector<Target> targets_;
  bool names_checked_ = false;  // a source gives the same ones each time
};

}  // namespace systole
